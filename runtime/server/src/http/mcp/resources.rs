//! Resources of the protocol: documents of the project's resources, and files, each by its address.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Map, Value, json};

/// Scheme of addresses.
const SCHEME: &str = "watershed://";
/// The kind in addresses of files, which no resource has.
const FILES: &str = "files";

/// Returns the forms of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}{{instance}}/{{kind}}/{{name}}"), "resource")
            .with_description("A resource of the project, as `describe_resource` shows it.")
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{SCHEME}{{instance}}/{FILES}/{{+path}}"), "file")
            .with_description("A file of the project, as `read_file` shows it. Needs the role `edit`.")
            .with_mime_type("application/json"),
    ]
}

/// Returns the resources of a page of the listing.
pub(super) fn of_page(instance: &str, page: &Value) -> Vec<Resource> {
    let listed = page["resources"].as_array().into_iter().flatten();
    listed
        .filter_map(|one| {
            let (kind, name) = (one["kind"].as_str()?, one["name"].as_str()?);
            let encoded = watershed_api::http::encoded;
            let address = format!(
                "{SCHEME}{}/{}/{}",
                encoded(instance),
                encoded(kind),
                encoded(name)
            );
            Some(Resource::new(address, format!("{kind}/{name}")).with_mime_type("application/json"))
        })
        .collect()
}

/// Returns the tool with the arguments that an address stands for; none for an address of another form.
pub(super) fn asked(address: &str) -> Option<(&'static str, Map<String, Value>)> {
    let rest = address.strip_prefix(SCHEME)?;
    let mut parts = rest.splitn(3, '/').map(decoded);
    let (instance, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    let (tool, arguments) = match kind == FILES {
        true => ("read_file", json!({ "instance": instance, "path": name })),
        false => (
            "describe_resource",
            json!({ "instance": instance, "kind": kind, "name": name }),
        ),
    };
    Some((tool, arguments.as_object().cloned()?))
}

fn decoded(part: &str) -> String {
    let as_query = format!("p={}", part.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(as_query.as_bytes())
        .map(|(_, value)| value.into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api41_an_address_stands_for_a_resource_or_a_file() {
        let page = json!({ "resources": [{ "kind": "model", "name": "a b/+&ü" }] });
        let address = of_page("shop", &page)[0].uri.clone();
        let (tool, arguments) = asked(&address).unwrap();
        assert_eq!(
            (tool, arguments["name"].as_str()),
            ("describe_resource", Some("a b/+&ü"))
        );
        assert_eq!(
            asked("watershed://shop/files/models/a.sql").unwrap().1["path"],
            "models/a.sql"
        );
        assert!(asked("file:///etc/passwd").is_none() && asked("watershed://shop").is_none());
    }
}
