//! Hints for authors who write dbt or Jinja syntax in SQL.

/// Returns advice for the first dbt or Jinja construct in a text, if there is any. Advice on a `ref` names the models of all.
pub(crate) fn hint(text: &str) -> Option<String> {
    let actions = || text.match_indices('{').filter_map(|(at, _)| text.get(at..));
    let (action, hint) = actions().find_map(|action| Some((action, hint_for_action(action)?)))?;
    let model = |action| {
        Call::read(action)
            .filter(|call| call.function == "ref")?
            .argument(0)
    };
    let mut models: Vec<&str> = actions().filter_map(model).collect();
    models.sort_unstable();
    models.dedup();
    match models.as_slice() {
        [_, _, ..] if model(action).is_some() => Some(format!(
            "write the plain names `{}`: what a query reads is found without a `ref`",
            models.join("`, `")
        )),
        _ => Some(hint),
    }
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
    if inner(action)?
        .strip_prefix("this")
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    {
        let hint = "write the model's own name: inside `{{ if incremental }}`, in `state:` and in `tests:` it stands for its last rows";
        return Some(hint.to_owned());
    }
    let call = Call::read(action)?;
    let name = |argument: usize, otherwise: &str| call.argument(argument).unwrap_or(otherwise).to_owned();
    match call.function {
        "ref" => {
            let name = name(0, "orders");
            Some(format!(
                "write the plain name `{name}`: what a query reads is found without a `ref`"
            ))
        }
        "source" => {
            let name = name(1, "orders");
            Some(format!(
                "write the plain name `{name}` of a source of this project"
            ))
        }
        "config" => {
            let hint = "settings are annotations: `-- @materialize: true` on a line of its own makes a table";
            Some(hint.to_owned())
        }
        "var" | "env_var" => {
            let name = name(0, "name");
            Some(format!(
                "write `{{{{ .env.{name} }}}}`, with `{name}` under `env:` in the manifest"
            ))
        }
        package if package.contains('.') && !package.starts_with('.') => Some(format!(
            "macros of dbt, as `{package}`, are not read here: write the SQL that it makes, or `CREATE MACRO` in `init.sql`"
        )),
        _ => None,
    }
}

/// A call of a function in an action of Jinja, such as `{{ ref('orders') }}`.
struct Call<'a> {
    function: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    /// Reads the call that begins an action; none for an action that begins with something else.
    fn read(action: &'a str) -> Option<Self> {
        let (function, rest) = inner(action)?.split_once('(')?;
        let function = function.trim_end();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        (!function.is_empty() && function.chars().all(is_name)).then(|| Self {
            function,
            arguments: rest.split(')').next().unwrap_or_default(),
        })
    }

    /// Returns one of the arguments without its quotes; none if the argument is left out.
    fn argument(&self, number: usize) -> Option<&'a str> {
        let argument = self.arguments.split(',').nth(number)?;
        Some(argument.trim().trim_matches(['\'', '"'])).filter(|name| !name.is_empty())
    }
}

/// Returns the text of an action after its opening braces.
fn inner(action: &str) -> Option<&str> {
    Some(
        action
            .strip_prefix("{{")?
            .trim_start_matches(['-', ' ', '\t', '\n']),
    )
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
        has(
            "FROM {{ ref('a') }} JOIN {{ ref('b') }} JOIN {{ ref('a') }} {{ config(x) }}",
            "plain names `a`, `b`",
        );
        has("SELECT {{ dbt_utils.star(ref('raw')) }}", "`dbt_utils.star`");
        has("SELECT {# all of it #} 1", "`-- ...`");
        has("SELECT max(day) FROM {{ this }}", "own name");
        assert_eq!(hint("SELECT 1"), None);
        assert_eq!(hint("{{ thisis }}"), None);
    }
}
