//! Values as texts, in the words of Postgres.

use std::io::Write as _;

use bytes::{BufMut as _, BytesMut};
use watershed_drivers::olap::Value;

use crate::types::Form;

/// Writes a value; NULL is not written here.
pub(crate) fn write(value: &Value, form: Form, out: &mut BytesMut) {
    match value {
        Value::Null => {}
        Value::Boolean(flag) if form == Form::Bool => out.put_u8(if *flag { b't' } else { b'f' }),
        Value::Text(text) => out.put_slice(text.as_bytes()),
        Value::Float(number) if form == Form::Float4 => {
            float(
                f64::from(*number),
                &format!("{number:e}"),
                6,
                &number.to_string(),
                out,
            );
        }
        Value::Double(number) if form == Form::Float8 => {
            float(*number, &format!("{number:e}"), 15, &number.to_string(), out);
        }
        Value::Date { days } => date(*days, out),
        Value::Time { nanos } => clock(nanos.div_euclid(1_000), out),
        Value::Timestamp { nanos, is_instant } => timestamp(*nanos, *is_instant, out),
        Value::Blob(bytes) => {
            out.put_slice(b"\\x");
            bytes
                .iter()
                .for_each(|byte| print(out, format_args!("{byte:02x}")));
        }
        // Writing to memory can't fail, nor can values that are none of odd keys.
        Value::List(_) | Value::Struct(_) | Value::Map(_) => print(out, format_args!("{}", value.to_json())),
        other => print(out, format_args!("{other}")),
    }
}

fn print(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    let _ = out.writer().write_fmt(text);
}

/// Writes the shortest digits that give the number back: with an exponent where Postgres has one.
fn float(number: f64, scientific: &str, most: i32, plain: &str, out: &mut BytesMut) {
    if !number.is_finite() {
        let word = match number {
            _ if number.is_nan() => "NaN",
            _ if number > 0.0 => "Infinity",
            _ => "-Infinity",
        };
        return out.put_slice(word.as_bytes());
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match (-4..most).contains(&exponent) {
        true => out.put_slice(plain.as_bytes()),
        false => {
            let sign = if exponent < 0 { '-' } else { '+' };
            print(out, format_args!("{digits}e{sign}{:02}", exponent.unsigned_abs()));
        }
    }
}

fn date(days: i32, out: &mut BytesMut) {
    match days {
        i32::MAX => out.put_slice(b"infinity"),
        days if days == -i32::MAX => out.put_slice(b"-infinity"),
        days => {
            let year = day(i64::from(days), out);
            era(year, out);
        }
    }
}

fn timestamp(nanos: i128, is_instant: bool, out: &mut BytesMut) {
    match nanos {
        i128::MAX => return out.put_slice(b"infinity"),
        i128::MIN => return out.put_slice(b"-infinity"),
        _ => {}
    }
    let micros = nanos.div_euclid(1_000);
    let of_day = 86_400_000_000;
    let days = i64::try_from(micros.div_euclid(of_day)).unwrap_or_default();
    let year = day(days, out);
    out.put_u8(b' ');
    clock(i64::try_from(micros.rem_euclid(of_day)).unwrap_or_default(), out);
    if is_instant {
        out.put_slice(b"+00");
    }
    era(year, out);
}

fn era(year: i64, out: &mut BytesMut) {
    if year < 1 {
        out.put_slice(b" BC");
    }
}

/// Writes a day, and returns its year: 0 is the one before the year 1.
fn day(days: i64, out: &mut BytesMut) -> i64 {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let shown = if year < 1 { 1 - year } else { year };
    print(out, format_args!("{shown:04}-{month:02}-{day:02}"));
    year
}

fn clock(micros: i64, out: &mut BytesMut) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    print(out, format_args!("{hours:02}:{minutes:02}:{seconds:02}"));
    if fraction != 0 {
        let digits = format!(".{fraction:06}");
        out.put_slice(digits.trim_end_matches('0').as_bytes());
    }
}

/// Reads an array in the words of Postgres, `{1,NULL,"a b"}`: its elements, none for each NULL; none if it is none of one
/// dimension.
pub(crate) fn read_array(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (mut elements, mut signs) = (Vec::new(), inner.chars().peekable());
    if inner.trim().is_empty() {
        return Some(elements);
    }
    loop {
        signs.by_ref().next_if(|sign| sign.is_whitespace());
        let (mut element, mut is_quoted) = (String::new(), false);
        if signs.next_if_eq(&'"').is_some() {
            is_quoted = true;
            loop {
                match signs.next()? {
                    '"' => break,
                    '\\' => element.push(signs.next()?),
                    sign => element.push(sign),
                }
            }
        }
        while let Some(sign) = signs.next_if(|sign| *sign != ',') {
            match sign {
                _ if sign.is_whitespace() && is_quoted => {}
                _ if is_quoted => return None,
                '{' | '}' | '"' => return None,
                '\\' => element.push(signs.next()?),
                sign => element.push(sign),
            }
        }
        let element = if is_quoted {
            element
        } else {
            element.trim().to_owned()
        };
        elements.push(match is_quoted {
            false if element.is_empty() => return None,
            false if element.eq_ignore_ascii_case("null") => None,
            _ => Some(element),
        });
        if signs.next().is_none() {
            return Some(elements);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_those_of_postgres() {
        let instant = |nanos| Value::Timestamp {
            nanos,
            is_instant: true,
        };
        let plain = |nanos| Value::Timestamp {
            nanos,
            is_instant: false,
        };
        for (value, form, text) in [
            (Value::Boolean(true), Form::Bool, "t"),
            (Value::Double(0.1), Form::Float8, "0.1"),
            (Value::Double(1e15), Form::Float8, "1e+15"),
            (Value::Double(1e14), Form::Float8, "100000000000000"),
            (Value::Double(-0.0), Form::Float8, "-0"),
            (Value::Double(1.5e-5), Form::Float8, "1.5e-05"),
            (Value::Double(f64::NEG_INFINITY), Form::Float8, "-Infinity"),
            (Value::Float(1e6), Form::Float4, "1e+06"),
            (Value::Float(0.1), Form::Float4, "0.1"),
            (Value::Date { days: 19_782 }, Form::Date, "2024-02-29"),
            (Value::Date { days: -719_163 }, Form::Date, "0001-12-31 BC"),
            (Value::Date { days: i32::MAX }, Form::Date, "infinity"),
            (
                Value::Time {
                    nanos: 86_400_000_000_000,
                },
                Form::Time,
                "24:00:00",
            ),
            (Value::Time { nanos: 1_500_000 }, Form::Time, "00:00:00.0015"),
            (plain(-1), Form::Timestamp, "1969-12-31 23:59:59.999999"),
            (
                instant(1_709_208_000_000_000_000),
                Form::Instant,
                "2024-02-29 12:00:00+00",
            ),
            (instant(i128::MIN), Form::Instant, "-infinity"),
            (Value::Blob(vec![0, 255]), Form::Bytes, "\\x00ff"),
            (
                Value::List(vec![Value::Integer(1), Value::Null]),
                Form::Json,
                "[1,null]",
            ),
        ] {
            let mut out = BytesMut::new();
            write(&value, form, &mut out);
            assert_eq!(std::str::from_utf8(&out), Ok(text), "{value:?}");
        }
    }

    #[test]
    fn arrays_are_read_as_postgres_writes_them() {
        let some = |text: &str| Some(text.to_owned());
        for (text, elements) in [
            ("{}", Some(vec![])),
            ("{1,2}", Some(vec![some("1"), some("2")])),
            ("{ 1 , NULL }", Some(vec![some("1"), None])),
            (
                "{\"a, \\\"b\\\"\",\"NULL\",\"\",c d}",
                Some(vec![some("a, \"b\""), some("NULL"), some(""), some("c d")]),
            ),
            ("{1,}", None),
            ("{{1},{2}}", None),
            ("{\"a\"b}", None),
            ("{\"a", None),
            ("1,2", None),
            ("", None),
        ] {
            assert_eq!(read_array(text), elements, "{text}");
        }
    }
}
