//! Mock users of a project, as whom admins look.

use axum::http::HeaderValue;
use serde_json::{Map, Value};
use watershed_api::{Code, Problem};
use watershed_callers::people::Attributes;
use watershed_reconcilers::project_parser::compilation;

use crate::instance::{Instance, compiler_options};

/// The header with the e-mail address of the mock user as whom an admin looks.
pub(super) const VIEW_AS: &str = "watershed-view-as";

/// Returns the attributes of one of the manifest's `mock_users`, by the e-mail address in a header.
///
/// # Errors
/// `unknown-name`, and `project-error` where the manifest can't be read.
pub(super) async fn mock_user(instance: &Instance, name: &HeaderValue) -> Result<Attributes, Problem> {
    let unknown = |message: &str| {
        Problem::new(Code::UnknownName, message).hint("the manifest lists users under `mock_users`")
    };
    let name = name.to_str().map_err(|_| unknown("the user's name is no text"))?;
    let (root, options) = (instance.options.root.clone(), compiler_options(&instance.options));
    let users = tokio::task::spawn_blocking(move || compilation::mock_users(&root, options)).await;
    let users = users.map_err(|_| Problem::new(Code::Defect, "the manifest's reader has panicked"))?;
    let users = users
        .map_err(|error| Problem::new(Code::ProjectError, format!("can't read the manifest: {error}")))?;
    let attributes = users.iter().filter_map(|user| match Value::from(user) {
        Value::Object(attributes) => Some(attributes),
        _ => None,
    });
    let is_meant = |user: &Map<String, Value>| {
        let email = user.get("email").and_then(Value::as_str);
        email.is_some_and(|email| email.eq_ignore_ascii_case(name))
    };
    let found = attributes.into_iter().find(is_meant);
    let found = found.ok_or_else(|| unknown(&format!("no mock user has the e-mail `{name}`")))?;
    Ok(found.into_iter().collect())
}
