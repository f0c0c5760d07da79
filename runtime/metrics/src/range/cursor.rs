//! A cursor for parsing texts from left to right.

use super::error::RangeError;
use super::length::{Length, MAX_COUNT};
use watershed_schedule::Grain;

/// A position in a text. Words are matched in any case, except the units of minutes and months.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// Creates a cursor at the start of a text.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the unread rest of the text.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns true at the end of the text.
    pub(super) fn is_done(&self) -> bool {
        self.rest().is_empty()
    }

    /// Returns the error for a text that has something unexpected at this position.
    pub(super) fn expected(&self, expected: &'static str) -> RangeError {
        RangeError::Syntax {
            text: self.text.to_owned(),
            at: self.at,
            expected,
        }
    }

    /// Skips spaces, if there are any.
    pub(super) fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Returns the next character without taking it.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes a sign; returns true if it was there.
    pub(super) fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    /// Takes a word and the spaces around it, unless a letter or digit follows; returns true if it was there.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let mut after = *self;
        after.spaces();
        let Some(found) = after.rest().get(..word.len()) else {
            return false;
        };
        if !found.eq_ignore_ascii_case(word) {
            return false;
        }
        after.at += word.len();
        if after.peek().is_some_and(char::is_alphanumeric) {
            return false;
        }
        after.spaces();
        *self = after;
        true
    }

    /// Takes a word at this position, unless a letter or digit follows; returns true if it was there. Spaces after it
    /// remain.
    pub(super) fn word_here(&mut self, word: &str) -> bool {
        let mut after = *self;
        after.at += word.len();
        let found = self.rest().get(..word.len());
        let is_word = found.is_some_and(|found| found.eq_ignore_ascii_case(word))
            && !after.peek().is_some_and(char::is_alphanumeric);
        if is_word {
            *self = after;
        }
        is_word
    }

    /// Takes everything up to the next space.
    pub(super) fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Takes an integer up to [`MAX_COUNT`].
    pub(super) fn number(&mut self) -> Result<i64, RangeError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest.get(..end).unwrap_or_default();
        let number = digits.parse::<i64>().ok().filter(|number| *number <= MAX_COUNT);
        let number = number.ok_or_else(|| self.expected("a whole number of up to ten digits"))?;
        self.at += end;
        Ok(number)
    }

    /// Takes exactly `count` digits; none if there are fewer.
    pub(super) fn digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.rest().get(..count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.at += count;
        digits.parse().ok()
    }

    /// Returns the unit of the next letter without taking it.
    pub(super) fn unit(&self) -> Option<Grain> {
        Some(match self.peek()? {
            's' | 'S' => Grain::Second,
            'm' => Grain::Minute,
            'h' | 'H' => Grain::Hour,
            'd' | 'D' => Grain::Day,
            'w' | 'W' => Grain::Week,
            'M' => Grain::Month,
            'q' | 'Q' => Grain::Quarter,
            'y' | 'Y' => Grain::Year,
            _ => return None,
        })
    }

    /// Takes the letter of a unit, such as `D` for days.
    pub(super) fn take_unit(&mut self) -> Result<Grain, RangeError> {
        let unit = self
            .unit()
            .ok_or_else(|| self.expected("a unit (s m h D W M Q Y)"))?;
        self.at += 1;
        Ok(unit)
    }

    /// Takes a sequence of numbers with units, such as `3W18D23h`.
    pub(super) fn length(&mut self) -> Result<Length, RangeError> {
        let count = self.number()?;
        let mut length = Length::of(count, self.take_unit()?);
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            let count = self.number()?;
            length = length.and(Length::of(count, self.take_unit()?));
        }
        Ok(length)
    }

    /// Takes an ISO 8601 duration, such as `P1Y2M`, `PT24H` or `P2DT10H`.
    pub(super) fn iso_length(&mut self) -> Result<Length, RangeError> {
        const DATES: [(char, Grain); 5] = [
            ('Y', Grain::Year),
            ('Q', Grain::Quarter),
            ('M', Grain::Month),
            ('W', Grain::Week),
            ('D', Grain::Day),
        ];
        const TIMES: [(char, Grain); 3] = [('H', Grain::Hour), ('M', Grain::Minute), ('S', Grain::Second)];
        let begin = *self;
        if !self.take('P') && !self.take('p') {
            return Err(self.expected("a duration in ISO 8601, such as `P7D`"));
        }
        let mut length: Option<Length> = None;
        let mut in_time = false;
        loop {
            if !in_time && (self.take('T') || self.take('t')) {
                in_time = true;
            } else if !self.peek().is_some_and(|next| next.is_ascii_digit()) {
                break;
            }
            let count = self.number()?;
            let units: &[_] = if in_time { &TIMES } else { &DATES };
            let letter = self.peek().map(|letter| letter.to_ascii_uppercase());
            let Some((_, grain)) = units.iter().find(|(unit, _)| letter == Some(*unit)) else {
                return Err(self.expected("a unit of ISO 8601 (Y Q M W D, after T: H M S)"));
            };
            self.at += 1;
            let part = Length::of(count, *grain);
            length = Some(length.map_or(part, |length| length.and(part)));
        }
        length.ok_or_else(|| begin.expected("a duration in ISO 8601, such as `P7D`"))
    }
}
