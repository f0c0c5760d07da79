//! Findings in the formats of continuous integration: SARIF, and GitHub's workflow commands.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use watershed_api::documents::{Diagnostic, Severity};
use watershed_compilers::Code;

/// Returns the findings as one SARIF document. `folder` is the project's folder in the repository.
pub(crate) fn sarif(findings: &[Diagnostic], folder: &Path) -> Value {
    let results: Vec<Value> = findings.iter().map(|found| result(found, folder)).collect();
    let rules: Vec<Value> = Code::ALL.iter().map(|code| rule(*code)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "watershed",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Value {
    let level = match code.severity() {
        watershed_compilers::Severity::Error => "error",
        watershed_compilers::Severity::Warning => "warning",
        watershed_compilers::Severity::Hint => "note",
    };
    json!({
        "id": code.as_str(),
        "shortDescription": {"text": code.meaning()},
        "help": {"text": code.fix()},
        "defaultConfiguration": {"level": level},
    })
}

fn result(found: &Diagnostic, folder: &Path) -> Value {
    let level = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    };
    let place = |path: &str, (line, column, end_line, end_column): (u32, u32, u32, u32)| {
        json!({
            "artifactLocation": {"uri": uri(path, folder)},
            "region": {
                "startLine": line.max(1),
                "startColumn": column.max(1),
                "endLine": end_line.max(1),
                "endColumn": end_column.max(1),
            },
        })
    };
    let at = (found.line, found.column, found.end_line, found.end_column);
    let mut result = json!({
        "ruleId": found.code,
        "level": level,
        "message": {"text": message(found)},
        "locations": [{"physicalLocation": place(&found.path, at)}],
    });
    let related = found.related.iter().map(|other| {
        let at = (other.line, other.column, other.end_line, other.end_column);
        json!({"message": {"text": other.message}, "physicalLocation": place(&other.path, at)})
    });
    let related: Vec<Value> = related.collect();
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    result
}

/// Returns the findings as commands of GitHub's workflows, one per line. `folder` is the project's folder in the
/// repository.
pub(crate) fn github(findings: &[Diagnostic], folder: &Path) -> String {
    let lines = findings.iter().map(|found| {
        let command = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "notice",
        };
        let file = property(&in_repository(&found.path, folder));
        let (line, end_line) = (found.line.max(1), found.end_line.max(1));
        // Columns only count where the finding stays on one line.
        let columns = if line == end_line {
            format!(
                ",col={},endColumn={}",
                found.column.max(1),
                found.end_column.max(1)
            )
        } else {
            String::new()
        };
        let (title, text) = (property(&found.code), data(&message(found)));
        format!("::{command} file={file},line={line},endLine={end_line}{columns},title={title}::{text}\n")
    });
    lines.collect()
}

fn message(found: &Diagnostic) -> String {
    match &found.hint {
        Some(hint) => format!("{}\n{hint}", found.message),
        None => found.message.clone(),
    }
}

/// Returns the URI of a file from its path in the repository, percent-encoded where needed.
fn uri(path: &str, folder: &Path) -> String {
    let mut address = String::new();
    for byte in in_repository(path, folder).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                address.push(char::from(byte));
            }
            _ => {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    address
}

/// Returns a file's path in the repository, with `/` between its parts.
fn in_repository(path: &str, folder: &Path) -> String {
    let path = folder.join(path);
    let parts = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

/// Escapes the text of a GitHub workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a GitHub workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            code: "misspelled-key".into(),
            path: "models/a, b.yaml".into(),
            line: 2,
            column: 1,
            end_line: 2,
            end_column: 12,
            message: "100 % wrong".into(),
            hint: Some("did you mean `materialize`?".into()),
            notes: Vec::new(),
            details: None,
            resource: None,
            related: Vec::new(),
        }
    }

    #[test]
    fn a_finding_is_one_line_for_github() {
        assert_eq!(
            github(&[found()], Path::new("shop")),
            "::warning file=shop/models/a%2C b.yaml,line=2,endLine=2,col=1,endColumn=12,title=misspelled-key::\
             100 %25 wrong%0Adid you mean `materialize`?\n"
        );
    }

    #[test]
    fn a_document_of_sarif_holds_every_finding_and_a_rule_for_its_code() {
        let document = sarif(&[found()], Path::new(""));
        let result = &document["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "misspelled-key");
        assert_eq!(result["level"], "warning");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "models/a%2C%20b.yaml");
        assert_eq!(place["region"]["endColumn"], 12);
        let rules = document["runs"][0]["tool"]["driver"]["rules"].as_array();
        let has_rule = rules
            .into_iter()
            .flatten()
            .any(|rule| rule["id"] == "misspelled-key");
        assert!(has_rule);
    }
}
