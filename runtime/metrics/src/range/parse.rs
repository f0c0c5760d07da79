//! Parsing of range expressions.

use std::str::FromStr;

use watershed_schedule::{Grain, Zone};

use super::cursor::Cursor;
use super::error::RangeError;
use super::expression::{Base, Expression, Interval, Move, Part, Point, Shift};
use super::iso;
use super::length::Length;

/// The largest number of parts, anchors or moves in one expression.
const MAX_PARTS: usize = 16;

impl FromStr for Expression {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let mut cursor = Cursor::new(text.trim());
        let mut expression = match legacy(cursor.rest()) {
            Some(modern) => return modern.parse(),
            None => Expression {
                interval: interval(&mut cursor)?,
                anchors: Vec::new(),
                by: None,
                zone: None,
                shift: None,
            },
        };
        while cursor.word("as") {
            if !cursor.word("of") || expression.anchors.len() == MAX_PARTS {
                return Err(cursor.expected("`of` and a point, up to 16 times"));
            }
            expression.anchors.push(point(&mut cursor)?);
        }
        if cursor.word("by") {
            expression.by = Some(cursor.take_unit()?);
        }
        if cursor.word("tz") {
            let name = cursor.name();
            let zone = Zone::find(name).map_err(|unknown| RangeError::UnknownZone { name: unknown.name })?;
            expression.zone = Some(zone);
        }
        if cursor.word("offset") {
            expression.shift = Some(shift(&mut cursor)?);
        }
        cursor.spaces();
        if cursor.is_done() {
            Ok(expression)
        } else {
            Err(cursor.expected("`as of`, `by`, `tz`, `offset` or the end"))
        }
    }
}

/// Returns the modern form of a legacy word, such as `rill-TD`; none for other texts.
fn legacy(text: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 10] = [
        ("rill-TD", "DTD as of watermark"),
        ("rill-WTD", "WTD as of watermark"),
        ("rill-MTD", "MTD as of watermark"),
        ("rill-QTD", "QTD as of watermark"),
        ("rill-YTD", "YTD as of watermark"),
        ("rill-PDC", "1D as of watermark/D"),
        ("rill-PWC", "1W as of watermark/W"),
        ("rill-PMC", "1M as of watermark/M"),
        ("rill-PQC", "1Q as of watermark/Q"),
        ("rill-PYC", "1Y as of watermark/Y"),
    ];
    let found = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, modern)| *modern)
}

fn interval(cursor: &mut Cursor<'_>) -> Result<Interval, RangeError> {
    if cursor.word("inf") {
        return Ok(Interval::All);
    }
    if matches!(cursor.peek(), Some('P' | 'p')) {
        return cursor.iso_length().map(Interval::Ending);
    }
    if let Some(grain) = to_date(cursor) {
        return Ok(Interval::ToDate(grain));
    }
    let mut ahead = *cursor;
    if ahead.take_unit().is_ok() && ahead.peek().is_none_or(|next| !next.is_alphabetic()) {
        return parts(cursor).map(Interval::Parts);
    }
    let mut ahead = *cursor;
    if iso::take(&mut ahead)?.is_none() && cursor.peek().is_some_and(|next| next.is_ascii_digit()) {
        return cursor.length().map(Interval::Before);
    }
    between(cursor)
}

/// Takes a word such as `MTD`, and returns its grain.
fn to_date(cursor: &mut Cursor<'_>) -> Option<Grain> {
    let mut reader = *cursor;
    let grain = reader.take_unit().ok()?;
    // `word` passes over spaces before the word, which must not stand here.
    if reader.peek() == Some(' ') || !reader.word("TD") {
        return None;
    }
    *cursor = reader;
    Some(grain)
}

/// Takes nested parts such as `s57 of m4 of H2`.
fn parts(cursor: &mut Cursor<'_>) -> Result<Vec<Part>, RangeError> {
    let mut parts: Vec<Part> = Vec::new();
    loop {
        let begin = *cursor;
        let grain = cursor.take_unit()?;
        let number = cursor.number()?;
        let fits = parts.last().is_none_or(|inner| inner.grain < grain);
        if number == 0 || grain == Grain::Year || !fits || parts.len() == MAX_PARTS {
            return Err(begin.expected("a part (`D2`) of a larger whole, counted from 1"));
        }
        parts.push(Part { grain, number });
        if !cursor.word("of") {
            return Ok(parts);
        }
    }
}

/// Takes two points, a point and a length, or one time that names a whole unit.
fn between(cursor: &mut Cursor<'_>) -> Result<Interval, RangeError> {
    let start = point(cursor)?;
    let begin = *cursor;
    let mut separator = cursor.word("to");
    if !separator {
        cursor.spaces();
        separator = cursor.take('/') || cursor.take(',');
        cursor.spaces();
    }
    if separator {
        if matches!(cursor.peek(), Some('P' | 'p')) {
            return Ok(Interval::After(start, cursor.iso_length()?));
        }
        return Ok(Interval::Between(start, point(cursor)?));
    }
    *cursor = begin;
    match start {
        Point {
            base: Base::Iso(iso, Some(grain)),
            moves,
        } if moves.is_empty() => Ok(Interval::Whole(iso, grain)),
        _ => Err(cursor.expected("`to` and a second point")),
    }
}

fn point(cursor: &mut Cursor<'_>) -> Result<Point, RangeError> {
    const NAMES: [(&str, Base); 5] = [
        ("ref", Base::Reference),
        ("earliest", Base::Earliest),
        ("latest", Base::Latest),
        ("watermark", Base::Watermark),
        ("now", Base::Now),
    ];
    let begin = *cursor;
    let mut base = NAMES
        .iter()
        .find(|(name, _)| cursor.word_here(name))
        .map(|(_, base)| *base);
    if base.is_none()
        && let Some((iso, grain)) = iso::take(cursor)?
    {
        base = Some(Base::Iso(iso, grain));
    }
    let mut moves = Vec::new();
    while let Some(step) = step(cursor, moves.last())? {
        if moves.len() == MAX_PARTS {
            return Err(cursor.expected("at most 16 moves"));
        }
        moves.push(step);
    }
    match base {
        Some(base) => Ok(Point { base, moves }),
        // A point may begin with a move, which then is one from the reference.
        None if matches!(moves.first(), Some(Move::By(_))) => Ok(Point {
            base: Base::Reference,
            moves,
        }),
        None => Err(begin.expected("a range such as `7D`, `MTD`, `P7D` or `2013-02`, or a point")),
    }
}

/// Takes a move: `+1D`, `-2M` or `/D`; none where a `/` separates two points.
fn step(cursor: &mut Cursor<'_>, before: Option<&Move>) -> Result<Option<Move>, RangeError> {
    let mut reader = *cursor;
    let found = if reader.take('+') {
        Move::By(reader.length()?)
    } else if reader.take('-') {
        Move::By(reader.length()?.times(-1))
    } else if reader.take('/') && reader.unit().is_some() {
        let grain = reader.take_unit()?;
        if reader.peek().is_some_and(char::is_alphanumeric) {
            return Err(cursor.expected("a unit alone (`/D`)"));
        }
        match (grain, before) {
            (Grain::Week, Some(Move::Floor(whole))) if *whole > Grain::Week => Move::FirstWeek,
            _ => Move::Floor(grain),
        }
    } else {
        return Ok(None);
    };
    *cursor = reader;
    Ok(Some(found))
}

/// Takes a shift: `-1P` or `-1M`.
pub(super) fn shift(cursor: &mut Cursor<'_>) -> Result<Shift, RangeError> {
    let begin = *cursor;
    let sign = if cursor.take('-') {
        -1
    } else if cursor.take('+') {
        1
    } else {
        return Err(begin.expected("`-1P`, or a sign and a length such as `-1M`"));
    };
    let mut ahead = *cursor;
    let count = ahead.number()?;
    if ahead.take('P') || ahead.take('p') {
        *cursor = ahead;
        return Ok(Shift::Periods(sign * count));
    }
    Ok(Shift::By(cursor.length()?.times(sign)))
}

/// Parses the offset of a comparison: `-1P`, `-1M`, an ISO 8601 duration back, or words such as `rill-PP` and
/// `rill-PW`.
pub(super) fn comparison(text: &str) -> Result<Shift, RangeError> {
    const WORDS: [(&str, Shift); 1] = [("rill-PP", Shift::Periods(-1))];
    const UNITS: [(&str, Grain); 5] = [
        ("rill-PD", Grain::Day),
        ("rill-PW", Grain::Week),
        ("rill-PM", Grain::Month),
        ("rill-PQ", Grain::Quarter),
        ("rill-PY", Grain::Year),
    ];
    let text = text.trim();
    if let Some((_, shift)) = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        return Ok(*shift);
    }
    if let Some((_, grain)) = UNITS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        return Ok(Shift::By(Length::of(-1, *grain)));
    }
    let mut cursor = Cursor::new(text);
    let shift = match cursor.peek() {
        Some('P' | 'p') => Shift::By(cursor.iso_length()?.times(-1)),
        _ => shift(&mut cursor)?,
    };
    if cursor.is_done() {
        Ok(shift)
    } else {
        Err(cursor.expected("the end"))
    }
}
