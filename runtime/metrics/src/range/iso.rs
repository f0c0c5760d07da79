//! Parsing of ISO 8601 times, possibly shortened: `2013`, `2013-02`, `2013-02-03T04:05:06.7Z`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use watershed_schedule::Grain;

use super::cursor::Cursor;
use super::error::RangeError;
use super::expression::Iso;

/// Takes a time, with the unit that it names, or none for a fraction of a second, which names an instant. Returns none
/// without moving the cursor if there is no time.
pub(super) fn take(cursor: &mut Cursor<'_>) -> Result<Option<(Iso, Option<Grain>)>, RangeError> {
    let mut reader = *cursor;
    let Some(year) = reader.digits(4) else {
        return Ok(None);
    };
    if reader.peek().is_some_and(|next| next.is_ascii_digit()) || reader.unit().is_some() {
        return Ok(None);
    }
    let mut parts = [year, 1, 1, 0, 0, 0];
    let mut grain = Grain::Year;
    let names = [
        ('-', Grain::Month),
        ('-', Grain::Day),
        ('T', Grain::Hour),
        (':', Grain::Minute),
        (':', Grain::Second),
    ];
    for (index, (sign, next)) in names.into_iter().enumerate() {
        let mut ahead = reader;
        let taken = ahead.take(sign) || (sign == 'T' && ahead.take('t'));
        let Some(digits) = taken.then(|| ahead.digits(2)).flatten() else {
            break;
        };
        // `2024-12M` is a year and a move by twelve months.
        if ahead.unit().is_some() || (sign == '-' && ahead.peek().is_some_and(|c| c.is_ascii_digit())) {
            break;
        }
        if let Some(part) = parts.get_mut(index + 1) {
            *part = digits;
        }
        grain = next;
        reader = ahead;
    }
    let mut nanoseconds = None;
    if grain == Grain::Second && reader.take('.') {
        nanoseconds = Some(fraction(&mut reader)?);
    }
    let local = local(parts, nanoseconds.unwrap_or_default())
        .ok_or_else(|| cursor.expected("a time that there is, such as `2024-02-29`"))?;
    let iso = match offset(&mut reader, grain) {
        None => Iso::Local(local),
        Some(offset) => Iso::Instant(offset.to_timestamp(local).map_err(|_| RangeError::OutOfRange)?),
    };
    *cursor = reader;
    Ok(Some((iso, nanoseconds.is_none().then_some(grain))))
}

/// Takes the digits of a fraction of a second, in nanoseconds.
fn fraction(cursor: &mut Cursor<'_>) -> Result<i32, RangeError> {
    let mut nanoseconds = 0;
    let mut unit = 100_000_000;
    let mut found = false;
    while let Some(digit) = cursor.digits(1) {
        found = true;
        nanoseconds += i32::try_from(digit).unwrap_or_default() * unit;
        unit /= 10;
    }
    if found {
        Ok(nanoseconds)
    } else {
        Err(cursor.expected("digits"))
    }
}

fn local(parts: [i64; 6], nanoseconds: i32) -> Option<DateTime> {
    let [year, month, day, hour, minute, second] = parts;
    let small = |part: i64| i8::try_from(part).ok();
    let date = Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
    let time = Time::new(small(hour)?, small(minute)?, small(second)?, nanoseconds).ok()?;
    Some(date.to_datetime(time))
}

/// Takes the offset `Z`, `+02:00` or `-0500` after a time that includes the hour.
fn offset(cursor: &mut Cursor<'_>, grain: Grain) -> Option<Offset> {
    if grain > Grain::Hour {
        return None;
    }
    let mut reader = *cursor;
    if reader.take('Z') || reader.take('z') {
        *cursor = reader;
        return Some(Offset::UTC);
    }
    let sign = match reader.peek()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    reader.take('+');
    reader.take('-');
    let hours = reader.digits(2)?;
    reader.take(':');
    let minutes = reader.digits(2)?;
    let seconds = i32::try_from((hours * 60 + minutes) * 60).ok()?;
    let offset = Offset::from_seconds(sign * seconds).ok()?;
    *cursor = reader;
    Some(offset)
}
