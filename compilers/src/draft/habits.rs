//! Hints for authors who write dbt or Jinja syntax in SQL.

/// Returns advice for the first dbt or Jinja construct in a text, if there is any.
pub(crate) fn hint(text: &str) -> Option<String> {
    let mut marks = text.match_indices('{').filter_map(|(at, _)| text.get(at..));
    marks.find_map(hint_for_action)
}

/// Returns advice for a text with braces that may not be meant as a template; none if the error shows that it is one.
pub(crate) fn hint_for_braces(message: &str) -> Option<String> {
    if ["`end`", "`else`", "double quotes"]
        .iter()
        .any(|part| message.contains(part))
    {
        return None;
    }
    let hint = "two braces begin a template, in texts and comments too: `{{ \"{{\" }}` writes two, `{ {` keeps them apart, a value of `.env` is `{{ .env.name }}`";
    Some(hint.to_owned())
}

fn hint_for_action(action: &str) -> Option<String> {
    if action.starts_with("{%") {
        let hint = "Jinja is not read here: `{{ if dev }} ... {{ else }} ... {{ end }}` chooses between texts, \
                    `{{ range list \"a\" \"b\" }} ... {{ end }}` repeats one, and a macro is `CREATE MACRO` in `init.sql`";
        return Some(hint.to_owned());
    }
    if action.starts_with("{#") {
        return Some("a comment is `-- ...` or `/* ... */`".to_owned());
    }
    let call = action
        .strip_prefix("{{")?
        .trim_start_matches(['-', ' ', '\t', '\n']);
    let name = |argument: usize| {
        let inner = call.split_once('(')?.1.split(')').next()?;
        let name = inner.split(',').nth(argument)?.trim().trim_matches(['\'', '"']);
        (!name.is_empty()).then(|| name.to_owned())
    };
    let is_call = |word: &str| {
        call.strip_prefix(word)
            .is_some_and(|rest| rest.trim_start().starts_with('('))
    };
    if is_call("ref") {
        let name = name(0).unwrap_or_else(|| "orders".to_owned());
        return Some(format!(
            "write the plain name `{name}`: what a query reads is found without a `ref`"
        ));
    }
    if is_call("source") {
        let name = name(1).unwrap_or_else(|| "orders".to_owned());
        return Some(format!(
            "write the plain name `{name}` of a source of this project"
        ));
    }
    if is_call("config") {
        let hint = "settings are annotations: `-- @materialize: true` on a line of its own makes a table";
        return Some(hint.to_owned());
    }
    if call
        .strip_prefix("this")
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    {
        let hint = "write the model's own name: inside `{{ if incremental }}`, in `state:` and in `tests:` it stands for its last rows";
        return Some(hint.to_owned());
    }
    if is_call("var") || is_call("env_var") {
        let name = name(0).unwrap_or_else(|| "name".to_owned());
        return Some(format!(
            "write `{{{{ .env.{name} }}}}`, with `{name}` under `env:` in the manifest"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_dbt_get_what_is_written_here() {
        let has = |text: &str, part: &str| {
            let said = hint(text).unwrap_or_default();
            assert!(said.contains(part), "{text}: {said}");
        };
        has("SELECT * FROM {{ ref('orders') }}", "plain name `orders`");
        has("FROM {{ source('shop', 'paid') }}", "plain name `paid`");
        has(
            "{{ config(materialized='table') }} SELECT 1",
            "@materialize: true",
        );
        has("SELECT 1 {% if is_incremental() %}", "{{ if dev }}");
        has("SELECT {{ var('late') }}", "{{ .env.late }}");
        has("{{ .env.x }} {{ ref('orders') }}", "plain name `orders`");
        assert_eq!(hint("SELECT {{ .env.late }} FROM {{ ref \"orders\" }}"), None);
        has("SELECT {# all of it #} 1", "`-- ...`");
        has("SELECT max(day) FROM {{ this }}", "own name");
        assert_eq!(hint("SELECT 1"), None);
        assert_eq!(hint("{{ thisis }}"), None);
    }
}
