//! APIs: queries that programs call.

use watershed_proto::ApiSpec;

use super::reader::{Declared, Reader};
use crate::{
    blocks::{
        data,
        security::{self, ACCESS, Extent},
    },
    diagnostics::Code,
    draft::Purpose,
    resource::Spec,
    yaml::{Data, Fields, Node, keys::blocks, misspelled},
};

blocks! {
    /// Keys of an API, beside those of its data block.
    pub(crate) static API = "api" Refused {
        "sql": Sql, "A query.";
        "connector": Text, "The connector that the query runs on.";
        "metrics_sql": Sql, "A query over metrics views.";
        "metrics": Block(&data::METRICS), "A query over a metrics view, as a mapping.";
        "api": Name("api"), "Another API.";
        "args": Map(&Any), "Arguments of that API.";
        "glob": Either(&[Text, Block(&data::GLOB)]), "Files that match a pattern.";
        "resource_status": Block(&data::RESOURCE_STATUS), "Resources by their status.";
        "ai": Any, "A question to an assistant.";
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it answers.";
        "openapi": Block(&OPENAPI), "How it is described to programs.";
        "security": Block(&ACCESS), "Who may call it.";
        "skip_nested_security": Bool, "Whether the security of what it reads is left out.";
    }

    /// Keys of the block `openapi`.
    pub(crate) static OPENAPI = "openapi" Refused {
        "summary": Text, "What it answers, in a line.";
        "parameters": List(&Map(&Any)), "Its parameters, as OpenAPI writes them.";
        "request_schema": Map(&Any), "The schema of its requests.";
        "response_schema": Map(&Any), "The schema of its answers.";
        "defs_prefix": Text, "What names of its schemas begin with.";
    }
}

/// Resolvers whose settings are not all known, so that other keys are passed on.
const LENIENT: [&str; 3] = ["glob", "resource_status", "ai"];

/// Reads an API from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&API);
    reader.templates_of("security");
    let security = security::take(&mut reader.fields, Extent::Access);
    reader.conditions(&security.conditions);
    let mut spec = ApiSpec {
        display_name: reader.display_name(),
        description: reader.text("description"),
        security_rules: security.rules,
        skip_nested_security: reader.fields.bool("skip_nested_security").unwrap_or_default(),
        ..ApiSpec::default()
    };
    openapi(reader, &mut spec);
    let mut declared = Declared::new(Spec::None);
    let sql = reader.about.sql.take();
    if let Some(found) = data::take(&mut reader.fields, reader.context.olap, sql) {
        let is_lenient = LENIENT.contains(&found.resolver.resolver.as_str());
        reader.read_sql(&found, Purpose::Query);
        declared.refs.extend(found.refs);
        spec.data = Some(found.resolver);
        if is_lenient {
            for (key, entry) in reader.fields.take_rest() {
                misspelled(reader.fields.findings(), &key, entry.key_at, &API);
            }
        }
    }
    reader.finish(&API);
    declared.spec = Spec::Api(Box::new(spec));
    declared
}

fn openapi(reader: &mut Reader<'_, '_>, spec: &mut ApiSpec) {
    let name = pascal_case(reader.about.name);
    spec.openapi_defs_prefix.clone_from(&name);
    let Some((map, at)) = reader.fields.map("openapi") else {
        return;
    };
    let mut block = Fields::new(map, at, reader.fields.findings());
    spec.openapi_summary = block.text("summary").unwrap_or_default();
    for node in block.list("parameters").unwrap_or_default() {
        if node.as_map().is_none() {
            let message = format!("a parameter is a mapping, not {}", node.data.type_name());
            block.findings().add(node.at, Code::WrongType, message);
        }
        spec.openapi_parameters.push(node.to_value());
    }
    let schema = |block: &mut Fields<'_>, key: &str| {
        let (map, at) = block.map(key)?;
        Some(Node::new(at, Data::Map(map)).to_value())
    };
    spec.openapi_request_schema = schema(&mut block, "request_schema");
    spec.openapi_response_schema = schema(&mut block, "response_schema");
    spec.openapi_defs_prefix = block.text("defs_prefix").unwrap_or(name);
    block.finish(&OPENAPI);
}

/// Converts a name to Pascal case: `top_ports` to `TopPorts`.
fn pascal_case(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().into_iter().flat_map(char::to_uppercase);
        first.chain(chars).collect::<String>()
    };
    words.map(capital).collect()
}
