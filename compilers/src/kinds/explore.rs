//! Explores: a dashboard over one metrics view, in a file of its own or implied by the view.

use watershed_proto::{ExploreSpec, FieldSelector};

use crate::{
    blocks::{
        security::{self, ACCESS, Extent},
        selector::{self, SELECTOR},
        time_range::{self, EXPLORE_DEFAULTS, TIME_RANGE},
    },
    diagnostics::{At, Code, spot},
    draft::{Context, RawRef, ref_to},
    kinds::{
        reader::{Declared, Implied, Reader},
        theme::{self, THEME},
    },
    resource::{Kind, Spec},
    yaml::{Fields, Node, keys::blocks},
};

blocks! {
    /// Keys that an explore accepts at its top level.
    pub(crate) static EXPLORE = "explore" Refused {
        "metrics_view": Name("metrics_view"), "The metrics view that it shows.";
        "dimensions": Either(&[Texts, Block(&SELECTOR)]), "The dimensions that it offers.";
        "measures": Either(&[Texts, Block(&SELECTOR)]), "The measures that it offers.";
        "security": Block(&ACCESS), "Who may see it.";
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it is about.";
        "banner": Text, "A line above it.";
        "theme": Either(&[Name("theme"), Block(&THEME)]), "A theme's name, or its colours.";
        "time_ranges": List(&Either(&[Text, Block(&TIME_RANGE)])), "Ranges of time that are proposed.";
        "time_zones": Texts, "Time zones that are proposed.";
        "lock_time_zone": Bool, "Whether only those time zones may be chosen.";
        "allow_custom_time_range": Bool, "Whether any range of time may be chosen.";
        "defaults": Block(&EXPLORE_DEFAULTS), "What is shown first.";
        "embeds": Block(&EMBEDS), "How it looks inside of other pages.";
        "ai_prompts": List(&Any), "Questions to an assistant that are proposed.";
    }

    /// Keys of the block `explore` in a metrics view.
    pub(crate) static EXPLORE_BLOCK = "explore_block" Refused {
        "skip": Bool, "Whether no explore comes with the metrics view.";
        "name": Text, "Its name, if it is not the metrics view's.";
        "display_name": Text, "The name for people.";
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it is about.";
        "banner": Text, "A line above it.";
        "theme": Either(&[Name("theme"), Block(&THEME)]), "A theme's name, or its colours.";
        "time_ranges": List(&Either(&[Text, Block(&TIME_RANGE)])), "Ranges of time that are proposed.";
        "time_zones": Texts, "Time zones that are proposed.";
        "lock_time_zone": Bool, "Whether only those time zones may be chosen.";
        "allow_custom_time_range": Bool, "Whether any range of time may be chosen.";
        "defaults": Block(&EXPLORE_DEFAULTS), "What is shown first.";
        "embeds": Block(&EMBEDS), "How it looks inside of other pages.";
        "ai_prompts": List(&Any), "Questions to an assistant that are proposed.";
        "default_theme": Name("theme"), "A theme's name." => "theme";
    }

    /// Keys of the block `embeds`.
    pub(crate) static EMBEDS = "embeds" Refused {
        "hide_pivot": Bool, "Whether it shows no pivot table.";
    }
}

/// Returns the selector that chooses every field.
pub(crate) fn all() -> FieldSelector {
    FieldSelector {
        all: true,
        ..FieldSelector::default()
    }
}

/// Reads an explore from its settings.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&EXPLORE);
    reader.refuse_sql(Kind::Explore);
    let display_name = reader.display_name();
    let metrics_view = reader.fields.text_node("metrics_view");
    if metrics_view.is_none() {
        let at = reader.fields.at();
        let message = "an explore needs a `metrics_view`";
        reader.findings().add(at, Code::MissingKey, message);
    }
    let name = metrics_view
        .as_ref()
        .and_then(Node::scalar_text)
        .unwrap_or_default();
    reader.templates_of("security");
    let context = reader.context;
    let (mut spec, mut refs) = shared(&mut reader.fields, context);
    refs.insert(
        0,
        ref_to(
            Kind::MetricsView,
            &name,
            metrics_view.as_ref().map(|node| node.at),
        ),
    );
    spec.display_name = display_name;
    spec.metrics_view = name;
    spec.metrics_view_at = metrics_view.and_then(|node| spot(node.at));
    spec.dimensions = selector::take(&mut reader.fields, "dimensions").or_else(|| Some(all()));
    spec.measures = selector::take(&mut reader.fields, "measures").or_else(|| Some(all()));
    let security = security::take(&mut reader.fields, Extent::Access);
    reader.conditions(&security.conditions);
    spec.security_rules = security.rules;
    reader.finish(&EXPLORE);
    let mut declared = Declared::new(Spec::Explore(Box::new(spec)));
    declared.refs = refs;
    declared
}

/// The metrics view that implies an explore.
pub(crate) struct Origin<'a> {
    pub(crate) view: &'a str,
    pub(crate) display_name: &'a str,
    pub(crate) version: u32,
}

/// Returns the explore that a metrics view implies: always in version 0, otherwise if the view has the block `explore`.
/// `old` holds settings from deprecated keys of the view.
pub(crate) fn from_metrics_view(
    fields: &mut Fields<'_>,
    origin: &Origin<'_>,
    old: ExploreSpec,
    context: &Context<'_>,
) -> Option<Implied> {
    let at = fields.key_at("explore");
    let block = fields.map("explore");
    if block.is_none() && origin.version > 0 {
        return None;
    }
    let has_block = block.is_some();
    let (map, block_at) = block.unwrap_or_else(|| (crate::yaml::Map::new(), fields.at()));
    let mut block = Fields::new(map, block_at, fields.findings());
    block.deprecations(&EXPLORE_BLOCK);
    let skip = block.bool("skip").unwrap_or_default();
    let name = block.text("name").filter(|name| !name.is_empty());
    let display_name = block.text("display_name").or_else(|| block.text("title"));
    let (mut spec, refs) = shared(&mut block, context);
    block.finish(&EXPLORE_BLOCK);
    if skip {
        return None;
    }
    let mut refs = refs;
    if !has_block {
        let theme = std::mem::take(&mut spec.theme);
        spec = ExploreSpec {
            allow_custom_time_range: true,
            ..old
        };
        if spec.theme.is_empty() {
            spec.theme = theme;
        }
        refs = theme_ref(&spec, None).into_iter().collect();
    }
    refs.insert(0, ref_to(Kind::MetricsView, origin.view, at));
    spec.display_name = display_name.unwrap_or_else(|| origin.display_name.to_owned());
    spec.metrics_view = origin.view.to_owned();
    spec.dimensions = Some(all());
    spec.measures = Some(all());
    spec.defined_in_metrics_view = true;
    spec.metrics_view_at = at.and_then(spot);
    Some(Implied {
        kind: Kind::Explore,
        name: name.unwrap_or_else(|| origin.view.to_owned()),
        at,
        spec: Spec::Explore(Box::new(spec)),
        refs,
    })
}

fn theme_ref(spec: &ExploreSpec, at: Option<At>) -> Option<RawRef> {
    (!spec.theme.is_empty()).then(|| ref_to(Kind::Theme, &spec.theme, at))
}

/// Reads the settings that an explore shares with the block `explore` of a metrics view.
fn shared(fields: &mut Fields<'_>, context: &Context<'_>) -> (ExploreSpec, Vec<RawRef>) {
    let theme_at = fields.value_at("theme");
    let (theme, embedded_theme) = theme::take(fields, context);
    let prompts = fields.list("ai_prompts").unwrap_or_default();
    let spec = ExploreSpec {
        description: fields.text("description").unwrap_or_default(),
        banner: fields.text("banner").unwrap_or_default(),
        theme,
        embedded_theme,
        time_ranges: time_range::list(fields, "time_ranges"),
        time_zones: time_range::time_zones(fields, "time_zones"),
        lock_time_zone: fields.bool("lock_time_zone").unwrap_or_default(),
        allow_custom_time_range: fields.bool("allow_custom_time_range").unwrap_or(true),
        defaults: time_range::defaults(fields, false),
        embeds_hide_pivot: embeds(fields),
        ai_prompts: prompts.iter().map(Node::to_value).collect(),
        ..ExploreSpec::default()
    };
    let refs = theme_ref(&spec, theme_at).into_iter().collect();
    (spec, refs)
}

fn embeds(fields: &mut Fields<'_>) -> bool {
    let Some((map, at)) = fields.map("embeds") else {
        return false;
    };
    let mut block = Fields::new(map, at, fields.findings());
    let hide = block.bool("hide_pivot").unwrap_or_default();
    block.finish(&EMBEDS);
    hide
}
