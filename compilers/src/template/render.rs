//! Rendering of SQL and other texts for a run.

use watershed_proto::ModelSpec;

use super::{
    Dialect,
    execute::execute,
    is_template, render_sql,
    scope::{RenderError, Scope},
};

/// The driver of MySQL, whose text literals differ from the engine's.
const MYSQL: &str = "mysql";

/// Renders a model's SQL by executing its templates; none for a model without SQL. A pure function.
///
/// # Errors
/// When a template can't be executed, e.g. reads a variable that is not there.
pub fn render(spec: &ModelSpec, scope: &Scope) -> Result<Option<String>, RenderError> {
    match &spec.sql {
        Some(sql) if sql.templated => render_sql(&sql.text, scope, dialect(spec)).map(Some),
        Some(sql) => Ok(Some(sql.text.clone())),
        None => Ok(None),
    }
}

/// Returns the dialect of a model's SQL, which is MySQL's if the model reads from such a database.
pub fn dialect(spec: &ModelSpec) -> Dialect {
    let driver = match spec.input_driver.as_str() {
        "" => &spec.input_connector,
        driver => driver,
    };
    match driver == MYSQL {
        true => Dialect::Mysql,
        false => Dialect::Engine,
    }
}

/// Renders a text other than SQL, such as a path or a message, by executing its templates. A pure function.
///
/// # Errors
/// When a template can't be executed.
pub fn render_text(text: &str, scope: &Scope) -> Result<String, RenderError> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    execute(text, scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_line() {
        let error = render_text("SELECT 1\nLIMIT {{ .env.most }}", &Scope::default()).expect_err("not set");
        assert_eq!(
            (error.message.as_str(), error.line),
            ("variable \"most\" is not set", 2)
        );
        assert!(error.hint.is_some());
    }

    #[test]
    fn text_that_is_no_template_stays_as_it_is() {
        let spec = ModelSpec {
            sql: Some(watershed_proto::SqlSource {
                text: "SELECT '{{'".into(),
                ..Default::default()
            }),
            ..ModelSpec::default()
        };
        assert_eq!(render(&spec, &Scope::default()), Ok(Some("SELECT '{{'".into())));
        assert_eq!(render(&ModelSpec::default(), &Scope::default()), Ok(None));
    }
}
