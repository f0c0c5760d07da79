//! Formats for tables, mails and sheets (Q21): numbers by presets and d3 patterns, and times cut to a grain.
//!
//! ```
//! use watershed_metrics::format::Format;
//!
//! assert_eq!(Format::preset("humanize").unwrap().apply(1_234_567.0), "1.2M");
//! assert_eq!(Format::d3("$,.2f").unwrap().apply(1234.5), "$1,234.50");
//! ```

mod decimal;
mod pattern;
mod preset;
mod sheet;
mod time;
mod write;

use decimal::Digits;
use pattern::Pattern;
use preset::Preset;

pub use pattern::FormatError;
pub use time::TimeFormat;
pub use write::Locale;

/// A format that turns numbers into texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Preset(Preset),
    Pattern(Pattern, Box<Locale>),
}

impl Format {
    /// Finds a preset by its name in the project format: `none`, `humanize`, `currency_usd`, `currency_eur`,
    /// `percentage`, `interval_ms`.
    pub fn preset(name: &str) -> Option<Self> {
        Preset::find(name).map(|preset| Self(Kind::Preset(preset)))
    }

    /// Parses a pattern of d3-format, such as `,.2f`.
    ///
    /// # Errors
    /// [`FormatError`] for what is no pattern.
    pub fn d3(pattern: &str) -> Result<Self, FormatError> {
        Self::d3_in(pattern, Locale::default())
    }

    /// Parses a pattern of d3-format, to be applied with the signs of a locale.
    ///
    /// # Errors
    /// [`FormatError`] for what is no pattern.
    pub fn d3_in(pattern: &str, locale: Locale) -> Result<Self, FormatError> {
        Ok(Self(Kind::Pattern(pattern.parse()?, Box::new(locale))))
    }

    /// Returns the equivalent format code of spreadsheets; none if they have no equivalent.
    pub fn sheet_code(&self) -> Option<String> {
        match &self.0 {
            Kind::Preset(preset) => sheet::of_preset(*preset),
            Kind::Pattern(pattern, locale) => sheet::of_pattern(pattern, locale),
        }
    }

    /// Formats a number; NaN is a dash.
    pub fn apply(&self, number: f64) -> String {
        if number.is_nan() {
            return "-".to_owned();
        }
        match &self.0 {
            Kind::Preset(preset) => preset.write(number),
            Kind::Pattern(pattern, locale) => write::write(pattern, locale, number),
        }
    }
}
