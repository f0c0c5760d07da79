//! Patterns of d3-format: `[[fill]align][sign][symbol][0][width][,][.precision][~][type]`.

use std::str::FromStr;

/// The largest width and precision of a pattern, beyond which digits carry no meaning.
const MAX_DIGITS: usize = 100;

/// The error for a text that is not a valid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no d3 format, such as `,.2f` or `$,.2f`")]
pub struct FormatError {
    /// The invalid format, as given.
    pub text: String,
}

/// A parsed pattern of d3-format.
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

/// The alignment of a number in its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Right,
    Left,
    Centre,
    /// Right-aligned, with sign and symbol to the left of the fill.
    AfterSign,
}

/// The rule for the signs of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A minus for negative numbers only.
    Minus,
    /// A plus for numbers from zero on.
    Plus,
    /// A space in place of a plus for numbers from zero on.
    Space,
    /// Brackets around negative numbers.
    Brackets,
}

/// The symbol shown with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    None,
    Currency,
    /// The prefix of the base, such as `0x`.
    Base,
}

/// The notation of numbers, by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// No letter: significant digits without trailing zeros, twelve by default.
    Shortest,
    /// The letter `e`: with an exponent.
    Exponent,
    /// The letter `f`: a fixed number of digits after the point.
    Fixed,
    /// The letter `g`: fixed or with an exponent, depending on the size.
    General,
    /// The letter `r`: rounded to significant digits.
    Rounded,
    /// The letter `s`: with an SI prefix.
    Prefix,
    /// The sign `%`: as a percentage.
    Percent,
    /// The letter `p`: as a percentage, rounded to significant digits.
    RoundedPercent,
    /// The letter `d`: rounded to an integer.
    Integer,
    /// The letters `b`, `o`, `x`, `X`: an integer in the given base, in upper case if true.
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

/// The unread rest of a pattern.
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

    /// Takes an optional number; the outer none means that it is too large.
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

    /// Takes fill, alignment, sign, symbol and the zero flag.
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

    /// Takes the letter of the notation, which must be last; none if anything follows.
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
