//! Reports: queries whose result is sent to people.

use watershed_proto::{ReportExport, ReportSpec, Schedule};

use super::{
    alert::TIMEOUT_SECONDS,
    reader::{Declared, Reader},
};
use crate::{
    blocks::{
        data::DATA,
        intervals::{self, INTERVALS},
        notify::{self, EMAIL, NOTIFY},
        query::{self, QUERY},
        run_as::{self, FOR},
        schedule::{self, REFRESH},
    },
    diagnostics::Code,
    draft::Purpose,
    resource::{Kind, Spec},
    yaml::{Fields, keys::blocks, word},
};

blocks! {
    /// Keys that a report accepts at its top level.
    pub(crate) static REPORT = "report" Refused {
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it is about.";
        "refresh": Block(&REFRESH), "When it is sent.";
        "watermark": Word(&intervals::WATERMARKS), "The time up to which it is about.";
        "intervals": Block(&INTERVALS), "Intervals of time that it is about, one by one.";
        "timeout": Duration, "How long the query may take; 5 minutes.";
        "data": Block(&DATA), "What yields its rows.";
        "query": Block(&QUERY), "What yields its rows." => "data";
        "for": Block(&FOR), "The user in whose name the rows are read.";
        "export": Block(&EXPORT), "The file that is sent.";
        "notify": Block(&NOTIFY), "Who is sent it.";
        "email": Block(&EMAIL), "People who are sent it by e-mail." => "notify.email";
        "annotations": Map(&Text), "Free notes.";
    }

    /// Keys of the block `export`.
    pub(crate) static EXPORT = "export" Refused {
        "format": Word(&FORMATS), "The file's format.";
        "include_header": Bool, "Whether the file begins with the report's name and its time, above the columns; false.";
        "raw": Bool, "Whether text that a spreadsheet would run stays as it is; false.";
        "limit": Count, "How many rows it holds at most.";
        "output_connector": Text, "The connector that the file is written to.";
        "output_properties": Map(&Any), "Settings of that connector.";
    }
}

/// The formats of the file that is sent.
const FORMATS: [&str; 4] = ["csv", "xlsx", "parquet", "pdf"];

/// Ways to fetch rows for which a format is required.
const NEED_FORMAT: [&str; 3] = ["sql", "metrics", ""];

/// Reads a report from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&REPORT);
    reader.refuse_sql(Kind::Report);
    let environment = reader.context.environment;
    let refresh = reader.fields.map("refresh");
    let mut spec = ReportSpec {
        display_name: reader.display_name(),
        description: reader.text("description"),
        refresh_schedule: Some(Schedule {
            has_times_elsewhere: false,
            ..schedule::read(refresh, environment, false, reader.fields.findings())
        }),
        watermark_inherit: intervals::inherits_watermark(&mut reader.fields),
        timeout_seconds: reader.fields.seconds("timeout").unwrap_or(TIMEOUT_SECONDS),
        ..ReportSpec::default()
    };
    spec.intervals = intervals::take(&mut reader.fields);
    let mut declared = Declared::new(Spec::None);
    spec.annotations = reader.fields.text_map("annotations");
    let data_at = reader.fields.key_at("data").or(reader.fields.key_at("query"));
    spec.data = reader.data("data", Purpose::Query, &mut declared);
    let query = query::take(&mut reader.fields);
    let has_query = query.is_some();
    let mut legacy = None;
    if let Some(query) = query {
        declared.refs.extend(query.refs);
        (spec.query_name, spec.query_args) = (query.name, query.args);
        legacy = query.run_as;
    }
    let users = &reader.context.manifest.mock_users;
    let run_as = run_as::take(legacy, &mut reader.fields, users);
    (spec.for_user_id, spec.for_user_email) = (run_as.user_id, run_as.user_email);
    spec.for_attributes = run_as.attributes;
    let export_at = reader.fields.key_at("export").unwrap_or(reader.fields.at());
    spec.export = export(&mut reader.fields);
    let format = spec.export.as_ref().map_or("", |export| export.format.as_str());
    if format == "pdf" {
        if let Some(at) = data_at {
            let message = "a report of the format `pdf` has no `data` and no `query`";
            reader.findings().add(at, Code::ConflictingKeys, message);
        }
        if !spec.annotations.contains_key("canvas") {
            let message = "a report of the format `pdf` needs the annotation `canvas`";
            let hint = "add `annotations: {canvas: NAME}`";
            reader
                .findings()
                .add_with_hint(export_at, Code::MissingKey, message, hint);
        }
    } else {
        query::check_one("a report", &mut reader.fields, spec.data.is_some(), has_query);
        let resolver = spec.data.as_ref().map_or("", |data| data.resolver.as_str());
        let is_read = spec.data.is_some() || has_query;
        if is_read && format.is_empty() && NEED_FORMAT.contains(&resolver) {
            let hint = "add `export: {format: csv}`";
            let message = "a report needs the format of its file";
            reader
                .findings()
                .add_with_hint(export_at, Code::MissingKey, message, hint);
        }
    }
    reader.templates_of("notify");
    spec.notifiers = notify::take(&mut reader.fields, reader.context).notifiers;
    if spec.notifiers.is_empty() {
        let at = reader.fields.at();
        let hint = "add `notify: {email: {recipients: [...]}}`";
        let message = "a report needs somebody to send it to";
        reader
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    reader.finish(&REPORT);
    declared.spec = Spec::Report(Box::new(spec));
    declared
}

fn export(fields: &mut Fields<'_>) -> Option<ReportExport> {
    let (map, at) = fields.map("export")?;
    let mut block = Fields::new(map, at, fields.findings());
    let export = ReportExport {
        format: word(&mut block, "format", &FORMATS).unwrap_or_default(),
        include_header: block.bool("include_header").unwrap_or_default(),
        raw: block.bool("raw").unwrap_or_default(),
        limit: block.count("limit").unwrap_or_default(),
        output_connector: block.text("output_connector").unwrap_or_default(),
        output_properties: block.value_map("output_properties"),
    };
    block.finish(&EXPORT);
    Some(export)
}
