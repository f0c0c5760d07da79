//! Conditions on the version of a file, from the headers of a call.

use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use watershed_api::{Code, Problem};

/// The most ETags of a condition.
const MOST_TAGS: usize = 100;

/// The condition of a change on the version of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) enum Condition {
    /// No condition, which is enough for a file that does not exist yet.
    None,
    /// No such file may exist (`If-None-Match: *`).
    Absent,
    /// The file must exist, in whatever version (`If-Match: *`).
    Present,
    /// The file must have one of these versions (`If-Match`).
    OneOf(Vec<String>),
}

impl Condition {
    /// Parses the condition of a call.
    ///
    /// # Errors
    /// `bad-argument`, for conditions that exclude one another or can't be read.
    pub(in crate::http) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let wrong = |message: &str| Problem::new(Code::BadArgument, message);
        let list = |name| -> Result<Vec<String>, Problem> {
            let mut tags = Vec::new();
            for value in headers.get_all(name) {
                let text = value
                    .to_str()
                    .map_err(|_| wrong("the version in the header is no text"))?;
                let named = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
                tags.extend(named.map(str::to_owned));
            }
            match tags.len() <= MOST_TAGS {
                true => Ok(tags),
                false => Err(wrong("the header names too many versions")),
            }
        };
        let (matches, none) = (list(IF_MATCH)?, list(IF_NONE_MATCH)?);
        let is_any = |tags: &[String]| tags.iter().any(|tag| tag == "*");
        match (
            headers.contains_key(IF_MATCH),
            headers.contains_key(IF_NONE_MATCH),
        ) {
            (true, true) => Err(wrong("`If-Match` and `If-None-Match` exclude one another")),
            (false, false) => Ok(Self::None),
            (true, false) if is_any(&matches) && matches.len() == 1 => Ok(Self::Present),
            (true, false) if !matches.is_empty() && !is_any(&matches) => Ok(Self::OneOf(matches)),
            (false, true) if is_any(&none) && none.len() == 1 => Ok(Self::Absent),
            (true, false) => Err(wrong("`If-Match` is the ETag of a version, or `*`")),
            (false, true) => Err(wrong("`If-None-Match` of a change is `*`")
                .hint("to replace a version, send its ETag as `If-Match`")),
        }
    }

    /// Returns true if a file of this version, or no file, fulfils the condition.
    ///
    /// A version of less than its bytes (`W/`) is no version to be replaced.
    pub(super) fn holds_for(&self, version: Option<&str>) -> bool {
        match (self, version) {
            (Self::None | Self::Absent, version) => version.is_none(),
            (Self::Present, version) => version.is_some(),
            (Self::OneOf(tags), Some(version)) => tags.iter().any(|tag| tag == version),
            (Self::OneOf(_), None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&'static str, &'static str)]) -> Option<Condition> {
        let headers = headers.iter().map(|(name, value)| {
            let name = axum::http::HeaderName::from_static(name);
            (name, axum::http::HeaderValue::from_static(value))
        });
        Condition::of(&headers.collect()).ok()
    }

    #[test]
    fn conditions_are_read_and_contradictions_refused() {
        assert_eq!(read(&[]), Some(Condition::None));
        assert_eq!(read(&[("if-none-match", "*")]), Some(Condition::Absent));
        assert_eq!(read(&[("if-match", " * ")]), Some(Condition::Present));
        let tags = Condition::OneOf(vec!["\"a\"".to_owned(), "\"b\"".to_owned()]);
        assert_eq!(read(&[("if-match", "\"a\", \"b\"")]), Some(tags.clone()));
        assert!(tags.holds_for(Some("\"b\"")) && !tags.holds_for(Some("\"c\"")) && !tags.holds_for(None));
        for wrong in [
            vec![("if-match", "\"a\""), ("if-none-match", "*")],
            vec![("if-none-match", "\"a\"")],
            vec![("if-match", "")],
            vec![("if-match", "*, \"a\"")],
        ] {
            assert_eq!(read(&wrong), None, "{wrong:?}");
        }
        let weak = Condition::OneOf(vec!["W/\"a\"".to_owned()]);
        assert!(!weak.holds_for(Some("\"a\"")));
    }
}
