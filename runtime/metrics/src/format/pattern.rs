//! Patterns of d3-format: `[[fill]align][sign][symbol][0][width][,][.precision][~][type]`.

use std::str::FromStr;

/// The largest width and precision of a pattern: no column is wider, and no number has more digits that mean something.
const MAX_DIGITS: usize = 100;

/// The error of a text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no d3 format, such as `,.2f` or `$,.2f`")]
pub struct FormatError {
    /// The text as it was given.
    pub text: String,
}

/// A pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) fill: char,
    pub(super) align: Align,
    pub(super) sign: Sign,
    pub(super) symbol: Symbol,
    pub(super) width: usize,
    pub(super) group: bool,
    pub(super) precision: Option<usize>,
    pub(super) trim: bool,
    pub(super) notation: Notation,
}

/// The side that a number stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Right,
    Left,
    Centre,
    /// Right, with the sign and the symbol to the left of the filling.
    AfterSign,
}

/// The sign of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing for those from zero.
    Minus,
    /// Plus for those from zero.
    Plus,
    /// A space for those from zero.
    Space,
    /// Brackets for those below zero.
    Brackets,
}

/// The symbol of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    None,
    Currency,
    /// The prefix of the base, as `0x`.
    Base,
}

/// The notation of numbers, by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// None: significant digits, twelve unless said, without trailing zeros.
    Shortest,
    /// `e`.
    Exponent,
    /// `f`.
    Fixed,
    /// `g`: fixed or with an exponent, by the size.
    General,
    /// `r`: significant digits.
    Rounded,
    /// `s`: with a prefix of SI.
    Prefix,
    /// `%`.
    Percent,
    /// `p`: a percentage of significant digits.
    RoundedPercent,
    /// `d`.
    Integer,
    /// `b`, `o`, `x`, `X`: by the base.
    Base(u32, bool),
}

impl FromStr for Pattern {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let mut reader = Reader(text);
        let mut pattern = reader.head();
        pattern.width = reader.number().ok_or_else(|| error(text))?.unwrap_or_default();
        pattern.group = reader.take(',');
        if reader.take('.') {
            let precision = reader.number().ok_or_else(|| error(text))?;
            pattern.precision = Some(precision.ok_or_else(|| error(text))?);
        }
        pattern.trim = reader.take('~');
        reader.notation(&mut pattern).ok_or_else(|| error(text))?;
        Ok(pattern)
    }
}

fn error(text: &str) -> FormatError {
    FormatError {
        text: text.to_owned(),
    }
}

/// The rest of a pattern that is read.
struct Reader<'t>(&'t str);

impl Reader<'_> {
    fn take(&mut self, sign: char) -> bool {
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn one_of<T: Copy>(&mut self, signs: &[(char, T)]) -> Option<T> {
        let found = signs.iter().find(|(sign, _)| self.take(*sign));
        found.map(|(_, value)| *value)
    }

    /// Takes digits; `None` if they are too many, or the number too large.
    #[expect(
        clippy::option_option,
        reason = "no number and a wrong one are different things"
    )]
    fn number(&mut self) -> Option<Option<usize>> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end)?;
        if digits.is_empty() {
            return Some(None);
        }
        let number = digits.parse().ok().filter(|number| *number <= MAX_DIGITS)?;
        self.0 = rest;
        Some(Some(number))
    }

    /// Takes filling, alignment, sign, symbol and the zero.
    fn head(&mut self) -> Pattern {
        const ALIGNS: [(char, Align); 4] = [
            ('>', Align::Right),
            ('<', Align::Left),
            ('^', Align::Centre),
            ('=', Align::AfterSign),
        ];
        const SIGNS: [(char, Sign); 4] = [
            ('-', Sign::Minus),
            ('+', Sign::Plus),
            (' ', Sign::Space),
            ('(', Sign::Brackets),
        ];
        const SYMBOLS: [(char, Symbol); 2] = [('$', Symbol::Currency), ('#', Symbol::Base)];
        let mut fill = ' ';
        let mut align = None;
        let mut chars = self.0.chars();
        if let (Some(first), Some(second)) = (chars.next(), chars.next())
            && let Some((_, found)) = ALIGNS.iter().find(|(sign, _)| *sign == second)
        {
            fill = first;
            align = Some(*found);
            self.0 = chars.as_str();
        }
        let mut align = align.or_else(|| self.one_of(&ALIGNS)).unwrap_or(Align::Right);
        let sign = self.one_of(&SIGNS).unwrap_or(Sign::Minus);
        let symbol = self.one_of(&SYMBOLS).unwrap_or(Symbol::None);
        if self.take('0') {
            fill = '0';
            align = Align::AfterSign;
        }
        Pattern {
            fill,
            align,
            sign,
            symbol,
            width: 0,
            group: false,
            precision: None,
            trim: false,
            notation: Notation::Shortest,
        }
    }

    /// Takes the letter, which must be the last.
    fn notation(&mut self, pattern: &mut Pattern) -> Option<()> {
        pattern.notation = match self.0 {
            "" => Notation::Shortest,
            "e" => Notation::Exponent,
            "f" => Notation::Fixed,
            "g" => Notation::General,
            "n" => {
                pattern.group = true;
                Notation::General
            }
            "r" => Notation::Rounded,
            "s" => Notation::Prefix,
            "%" => Notation::Percent,
            "p" => Notation::RoundedPercent,
            "d" => Notation::Integer,
            "b" => Notation::Base(2, false),
            "o" => Notation::Base(8, false),
            "x" => Notation::Base(16, false),
            "X" => Notation::Base(16, true),
            _ => return None,
        };
        Some(())
    }
}
