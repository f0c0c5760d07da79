//! Alerts: conditions about which people are notified.

use watershed_proto::{AlertSpec, Schedule};

use super::reader::{Declared, Reader};
use crate::{
    blocks::{
        data::DATA,
        intervals::{self, INTERVALS},
        notify::{self, EMAIL, NOTIFY},
        query::{self, QUERY},
        run_as::{self, FOR},
        schedule::{self, REFRESH},
    },
    draft::Purpose,
    resource::{Kind, Spec},
    yaml::keys::blocks,
};

blocks! {
    /// Keys that an alert accepts at its top level.
    pub(crate) static ALERT = "alert" Refused {
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it is about.";
        "refresh": Block(&REFRESH), "When the condition is checked.";
        "watermark": Word(&intervals::WATERMARKS), "The time up to which the condition is checked.";
        "intervals": Block(&INTERVALS), "Intervals of time that are checked one by one.";
        "timeout": Duration, "How long a check may take; 5 minutes.";
        "data": Block(&DATA), "What yields the rows of which people are told.";
        "for": Block(&FOR), "The user in whose name the rows are read.";
        "query": Block(&QUERY), "What yields the rows of which people are told." => "data";
        "on_recover": Bool, "Whether people are told of a recovery; false.";
        "on_fail": Bool, "Whether people are told of a failure; true.";
        "on_error": Bool, "Whether people are told of an error; false.";
        "renotify": Bool, "Whether people are told again while nothing changes; false.";
        "renotify_after": Duration, "How long after they are told again.";
        "cool_down": Duration, "How long after a failure was told nothing but a recovery is told.";
        "notify": Block(&NOTIFY), "Who is told.";
        "email": Block(&EMAIL), "People who are told by e-mail." => "notify.email";
        "annotations": Map(&Text), "Free notes.";
    }
}

/// The default time limit of a check, in seconds.
pub(super) const TIMEOUT_SECONDS: u32 = 300;

/// Reads an alert from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&ALERT);
    reader.refuse_sql(Kind::Alert);
    let environment = reader.context.environment;
    let refresh = reader.fields.map("refresh");
    let mut spec = AlertSpec {
        display_name: reader.display_name(),
        description: reader.text("description"),
        refresh_schedule: Some(Schedule {
            has_times_elsewhere: false,
            ..schedule::read(refresh, environment, false, reader.fields.findings())
        }),
        watermark_inherit: intervals::inherits_watermark(&mut reader.fields),
        timeout_seconds: reader.fields.seconds("timeout").unwrap_or(TIMEOUT_SECONDS),
        ..AlertSpec::default()
    };
    spec.intervals = intervals::take(&mut reader.fields);
    let mut declared = Declared::new(Spec::None);
    let data = reader.data("data", Purpose::Query, &mut declared);
    let query = query::take(&mut reader.fields);
    query::check_one("an alert", &mut reader.fields, data.is_some(), query.is_some());
    let mut legacy = None;
    if let Some(query) = query {
        declared.refs.extend(query.refs);
        spec.query_name = query.name;
        spec.query_args = query.args;
        legacy = query.run_as;
    }
    spec.data = data;
    let users = &reader.context.manifest.mock_users;
    let run_as = run_as::take(legacy, &mut reader.fields, users);
    (spec.for_user_id, spec.for_user_email) = (run_as.user_id, run_as.user_email);
    spec.for_attributes = run_as.attributes;
    reader.templates_of("notify");
    let told = notify::take(&mut reader.fields, reader.context);
    let old = told.legacy;
    let mut said = |key: &str, old: Option<bool>, default| reader.fields.bool(key).or(old).unwrap_or(default);
    spec.notify_on_recover = said("on_recover", old.on_recover, false);
    spec.notify_on_fail = said("on_fail", old.on_fail, true);
    spec.notify_on_error = said("on_error", old.on_error, false);
    spec.renotify = said("renotify", old.renotify, false);
    let after = reader.fields.seconds("renotify_after").or(old.renotify_after);
    spec.renotify_after_seconds = after.unwrap_or_default();
    spec.cool_down_seconds = reader.fields.seconds("cool_down").unwrap_or_default();
    spec.notifiers = told.notifiers;
    spec.annotations = reader.fields.text_map("annotations");
    reader.finish(&ALERT);
    declared.spec = Spec::Alert(Box::new(spec));
    declared
}
