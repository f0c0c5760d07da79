//! Forms of rows: the choice of one by the header `Accept`.

use axum::http::header::{ACCEPT, CONTENT_DISPOSITION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use watershed_api::{Code, Problem};
use watershed_drivers::olap::FileFormat;

use super::answers::Unanswered;

/// Header, or trailer of a longer answer, that marks rows which a limit cut off.
pub(super) const TRUNCATED: HeaderName = HeaderName::from_static("watershed-truncated");

/// A form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A document with columns and rows.
    Json,
    /// A JSON object per line.
    Lines,
    /// Comma-separated values with a header.
    Csv,
    /// Arrow's format for communication between processes, as a stream.
    Arrow,
    /// A workbook of one sheet.
    Xlsx,
    /// A Parquet file.
    Parquet,
}

/// All forms of rows.
pub(super) const ALL: [Form; 6] = [
    Form::Json,
    Form::Lines,
    Form::Csv,
    Form::Arrow,
    Form::Xlsx,
    Form::Parquet,
];

/// Media types with their forms; the first of equal worth is chosen.
const MEDIA: [(&str, Form); 7] = [
    ("application/json", Form::Json),
    ("application/x-ndjson", Form::Lines),
    ("application/jsonl", Form::Lines),
    ("text/csv", Form::Csv),
    ("application/vnd.apache.arrow.stream", Form::Arrow),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        Form::Xlsx,
    ),
    ("application/vnd.apache.parquet", Form::Parquet),
];

/// A form that was chosen, with the media type under which it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The chosen form.
    pub(super) form: Form,
    /// Media type of the form, as the caller wrote it.
    pub(super) media: &'static str,
}

impl Form {
    /// Returns the extension of files in this form.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Lines => "jsonl",
            Self::Csv => "csv",
            Self::Arrow => "arrows",
            Self::Xlsx => "xlsx",
            Self::Parquet => "parquet",
        }
    }

    /// Returns the file format of a form that is made as a file before it is sent; none for others.
    pub(super) fn file_format(self) -> Option<FileFormat> {
        match self {
            Self::Xlsx => Some(FileFormat::Xlsx),
            Self::Parquet => Some(FileFormat::Parquet),
            Self::Json | Self::Lines | Self::Csv | Self::Arrow => None,
        }
    }
}

/// Chooses the form that a caller prefers among those that a path has; JSON for a caller without a preference.
///
/// # Errors
/// 406 with the media types of the path, when the caller accepts none of them.
pub(super) fn choose(headers: &HeaderMap, offered: &[Form]) -> Result<Chosen, Unanswered> {
    let ranges: Vec<Range> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Range::parse)
        .collect();
    let offers = || MEDIA.into_iter().filter(|(_, form)| offered.contains(form));
    let json = Chosen {
        form: Form::Json,
        media: MEDIA[0].0,
    };
    if ranges.is_empty() && !headers.contains_key(ACCEPT) {
        return Ok(json);
    }
    let worth = |media: &str| {
        let matching = (0_usize..)
            .zip(&ranges)
            .filter_map(|(at, range)| range.precision(media).map(|precision| (precision, at, range)));
        // The most precise range has the say; of equal ones the first.
        let (precision, at, range) =
            matching.max_by_key(|(precision, at, _)| (*precision, usize::MAX - at))?;
        (range.thousandths > 0).then_some((range.thousandths, precision, usize::MAX - at))
    };
    // Of equal worth, the last is the greatest for `max_by_key`.
    let ordered = offers().rev();
    let rated = ordered.filter_map(|(media, form)| Some((worth(media)?, Chosen { form, media })));
    let best = rated.max_by_key(|(worth, _)| *worth);
    best.map(|(_, chosen)| chosen).ok_or_else(|| {
        let media: Vec<&str> = offers().map(|(media, _)| media).collect();
        let problem = Problem::new(
            Code::BadArgument,
            "the header `Accept` names no form of these rows",
        )
        .hint(format!("the forms are {}", media.join(", ")));
        Unanswered::Status(problem, StatusCode::NOT_ACCEPTABLE)
    })
}

/// Names the file as which a browser keeps a response; JSON is shown instead.
pub(super) fn name_file(response: &mut Response, name: &str, form: Form) {
    let name = file_name(name, form);
    if form != Form::Json
        && let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
    {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
}

/// Returns the header that marks rows which a limit cut off.
pub(super) fn truncated() -> HeaderMap {
    HeaderMap::from_iter([(TRUNCATED, HeaderValue::from_static("true"))])
}

/// Returns the name of a file of rows: letters, digits, `.`, `-` and `_` alone, of bounded length.
fn file_name(name: &str, form: Form) -> String {
    let safe = |sign: char| match sign {
        sign if sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_') => sign,
        _ => '_',
    };
    let stem: String = name.chars().take(100).map(safe).collect();
    let stem = if stem.is_empty() { "rows" } else { &stem };
    format!("{stem}.{}", form.extension())
}

/// A media range of `Accept`.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// Weight in thousandths.
    thousandths: u16,
}

impl<'a> Range<'a> {
    /// Parses a range; none for text that is no range.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        Some(Self {
            kind,
            subtype,
            thousandths: weight.map_or(Some(1_000), thousandths)?,
        })
    }

    /// Returns the precision with which the range names a media type; none if it doesn't name it.
    fn precision(&self, media: &str) -> Option<u8> {
        let (kind, subtype) = media.split_once('/')?;
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, other) if own.eq_ignore_ascii_case(kind) && other.eq_ignore_ascii_case(subtype) => Some(2),
            _ => None,
        }
    }
}

/// Reads a weight between 0 and 1 with at most three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "0" if is_number => format!("{decimals:0<3}").parse().ok(),
        "1" if is_number && decimals.bytes().all(|byte| byte == b'0') => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))])
    }

    fn chosen(value: &'static str) -> Option<Form> {
        choose(&accept(value), &ALL).ok().map(|chosen| chosen.form)
    }

    #[test]
    fn s_api25_the_form_is_that_of_the_greatest_weight_and_then_of_the_first_name() {
        for (value, form) in [
            ("*/*", Form::Json),
            ("application/*", Form::Json),
            ("text/*", Form::Csv),
            ("TEXT/CSV; header=present", Form::Csv),
            ("text/csv, */*;q=0.1", Form::Csv),
            ("text/csv;q=0.1, application/json;q=0.2", Form::Json),
            ("*/*, application/json;q=0", Form::Lines),
            ("text/csv, application/vnd.apache.parquet", Form::Csv),
            ("application/vnd.apache.parquet,text/csv", Form::Parquet),
            (
                "text/html, application/vnd.apache.arrow.stream;q=0.001",
                Form::Arrow,
            ),
            ("application/jsonl", Form::Lines),
            // A weight that can't be read is no weight of its own.
            ("text/csv;q=much, application/x-ndjson;q=0.5", Form::Lines),
        ] {
            assert_eq!(chosen(value), Some(form), "{value}");
        }
        let none = choose(&HeaderMap::new(), &ALL);
        assert_eq!(none.ok().map(|chosen| chosen.form), Some(Form::Json));
        let lines = choose(&accept("application/jsonl"), &ALL);
        assert_eq!(lines.ok().map(|chosen| chosen.media), Some("application/jsonl"));
    }

    #[test]
    fn s_api25_a_caller_who_accepts_no_form_is_told_all_of_them() {
        for value in [
            "text/html",
            "*/*;q=0",
            "text/csv;q=0",
            "",
            "nonsense",
            "text/csv;q=1.5",
        ] {
            match choose(&accept(value), &[Form::Json, Form::Csv]) {
                Err(Unanswered::Status(problem, status)) => {
                    assert_eq!(status, StatusCode::NOT_ACCEPTABLE);
                    let hint = problem.hint.map(|hint| hint.to_string()).unwrap_or_default();
                    assert_eq!(hint, "the forms are application/json, text/csv", "{value}");
                }
                other => panic!("{value}: {other:?}"),
            }
        }
    }

    #[test]
    fn s_api25_names_of_files_have_no_signs_that_end_a_header_or_a_folder() {
        assert_eq!(file_name("daily orders", Form::Csv), "daily_orders.csv");
        assert_eq!(file_name("../a\"b\r\n;é", Form::Xlsx), "___a_b____.xlsx");
        assert_eq!(file_name("", Form::Parquet), "rows.parquet");
        assert_eq!(file_name(&"x".repeat(500), Form::Arrow).len(), 107);
    }
}
