//! Values in the binary format of Postgres.

use bytes::{BufMut as _, BytesMut};
use watershed_drivers::olap::Value;

use crate::text;
use crate::types::Form;

/// Days from 1970 to 2000, from which Postgres counts.
const DAYS: i32 = 10_957;
/// Microseconds from 1970 to 2000.
const MICROS: i128 = 946_684_800_000_000;

/// Writes a value; NULL is not written here.
///
/// # Errors
/// The value, as a text, when the type can't hold it.
pub(crate) fn write(value: &Value, form: Form, out: &mut BytesMut) -> Result<(), String> {
    let beyond = || format!("the value {value} can't be sent in the binary format");
    match (form, value) {
        (_, Value::Null) => {}
        (Form::Bool, Value::Boolean(flag)) => out.put_u8(u8::from(*flag)),
        (Form::Int2, Value::Integer(number)) => out.put_i16((*number).try_into().map_err(|_| beyond())?),
        (Form::Int4, Value::Integer(number)) => out.put_i32((*number).try_into().map_err(|_| beyond())?),
        (Form::Int8, Value::Integer(number)) => out.put_i64((*number).try_into().map_err(|_| beyond())?),
        (Form::Float4, Value::Float(number)) => out.put_f32(*number),
        (Form::Float8, Value::Double(number)) => out.put_f64(*number),
        (Form::Numeric, number) => {
            let is_written = match number {
                Value::Decimal { digits, scale } => decimal(*digits, *scale, out),
                Value::Integer(number) => decimal(*number, 0, out),
                _ => None,
            };
            // What is no number of the machine, or not with its digits in groups, is read as a text.
            let text = || numeric(&number.to_string(), out);
            is_written.or_else(text).ok_or_else(beyond)?;
        }
        (Form::Date, Value::Date { days }) => out.put_i32(match *days {
            i32::MAX => i32::MAX,
            days if days == -i32::MAX => i32::MIN,
            days => days.checked_sub(DAYS).ok_or_else(beyond)?,
        }),
        (Form::Time, Value::Time { nanos }) => out.put_i64(nanos.div_euclid(1_000)),
        (Form::Timestamp | Form::Instant, Value::Timestamp { nanos, .. }) => out.put_i64(match *nanos {
            i128::MAX => i64::MAX,
            i128::MIN => i64::MIN,
            nanos => (nanos.div_euclid(1_000) - MICROS)
                .try_into()
                .map_err(|_| beyond())?,
        }),
        (Form::Uuid, Value::Text(text)) => {
            let digits: String = text.chars().filter(|sign| *sign != '-').collect();
            out.put_u128(u128::from_str_radix(&digits, 16).map_err(|_| beyond())?);
        }
        (Form::Bytes, Value::Blob(bytes)) => out.put_slice(bytes),
        (Form::Text | Form::Json, value) => text::write(value, form, out),
        _ => return Err(beyond()),
    }
    Ok(())
}

/// The most groups of four digits of a 128-bit number.
const GROUPS: usize = 10;

/// Writes a decimal number as [`numeric`] does; none if its digits don't fit the machine's numbers, and nothing is written.
fn decimal(digits: i128, scale: u8, out: &mut BytesMut) -> Option<()> {
    let fraction = usize::from(scale.div_ceil(4));
    let aligning = 10_u128.pow(u32::try_from(fraction * 4).ok()? - u32::from(scale));
    let mut rest = digits.unsigned_abs().checked_mul(aligning)?;
    let (mut groups, mut number) = ([0_u16; GROUPS], 0);
    while rest > 0 {
        // Divisions of 128 bits are several times as dear.
        let (left, group) = match u64::try_from(rest) {
            Ok(rest) => (u128::from(rest / 10_000), rest % 10_000),
            Err(_) => (rest / 10_000, u64::try_from(rest % 10_000).ok()?),
        };
        groups[number] = u16::try_from(group).ok()?;
        (rest, number) = (left, number + 1);
    }
    let all = groups.get(..number)?;
    let kept = all.get(all.iter().take_while(|group| **group == 0).count()..)?;
    let first = i16::try_from(number).ok()? - i16::try_from(fraction).ok()? - 1;
    out.put_u16(u16::try_from(kept.len()).ok()?);
    out.put_i16(if kept.is_empty() { 0 } else { first });
    out.put_u16(if digits < 0 { 0x4000 } else { 0 });
    out.put_u16(u16::from(scale));
    kept.iter().rev().for_each(|group| out.put_u16(*group));
    Some(())
}

/// Writes a number as Postgres does: groups of four digits, with the place of the first.
fn numeric(text: &str, out: &mut BytesMut) -> Option<()> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = u16::try_from(fraction.len()).ok()?;
    let all = format!(
        "{}{whole}{fraction}{}",
        "0".repeat((4 - whole.len() % 4) % 4),
        "0".repeat((4 - fraction.len() % 4) % 4)
    );
    let groups: Option<Vec<i16>> = all
        .as_bytes()
        .chunks(4)
        .map(|group| std::str::from_utf8(group).ok()?.parse().ok())
        .collect();
    let groups = groups?;
    let first = i16::try_from(whole.len().div_ceil(4)).ok()? - 1;
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let trailing = groups.iter().rev().take_while(|group| **group == 0).count();
    let kept = groups
        .get(leading..groups.len().saturating_sub(trailing))
        .unwrap_or(&[]);
    out.put_u16(u16::try_from(kept.len()).ok()?);
    out.put_i16(match kept.is_empty() {
        true => 0,
        false => first - i16::try_from(leading).ok()?,
    });
    out.put_u16(if is_negative && !kept.is_empty() {
        0x4000
    } else {
        0
    });
    out.put_u16(scale);
    kept.iter().for_each(|group| out.put_i16(*group));
    Some(())
}

/// Reads a value that a client sent in the binary format, as a text that the engine reads; none if it is no such value.
pub(crate) fn read(bytes: &[u8], form: Form) -> Option<String> {
    let whole = |bytes: &[u8]| -> Option<[u8; 8]> { bytes.try_into().ok() };
    Some(match form {
        Form::Bool => match bytes {
            [0] => "false".to_owned(),
            [1] => "true".to_owned(),
            _ => return None,
        },
        Form::Int2 => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        Form::Int4 => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        Form::Int8 => i64::from_be_bytes(whole(bytes)?).to_string(),
        Form::Float4 => f32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        Form::Float8 => f64::from_be_bytes(whole(bytes)?).to_string(),
        Form::Text | Form::Json => std::str::from_utf8(bytes).ok()?.to_owned(),
        Form::Date => {
            let days = i32::from_be_bytes(bytes.try_into().ok()?);
            as_text(&Value::Date {
                days: days.checked_add(DAYS)?,
            })
        }
        Form::Time => as_text(&Value::Time {
            nanos: i64::from_be_bytes(whole(bytes)?)
                .checked_mul(1_000)
                .filter(|nanos| (0..=86_400_000_000_000).contains(nanos))?,
        }),
        Form::Timestamp | Form::Instant => as_text(&Value::Timestamp {
            nanos: (i128::from(i64::from_be_bytes(whole(bytes)?)) + MICROS) * 1_000,
            is_instant: form == Form::Instant,
        }),
        Form::Uuid => {
            let digits = format!("{:032x}", u128::from_be_bytes(bytes.try_into().ok()?));
            let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
            [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
        }
        Form::Bytes => bytes.iter().map(|byte| format!("\\x{byte:02X}")).collect(),
        Form::Numeric => read_numeric(bytes)?,
        Form::Jsonb => std::str::from_utf8(bytes.strip_prefix(&[1])?).ok()?.to_owned(),
        Form::Interval => {
            let (micros, rest) = bytes.split_first_chunk::<8>()?;
            let (days, months) = rest.split_first_chunk::<4>()?;
            let months = i32::from_be_bytes(months.try_into().ok()?);
            let (micros, days) = (i64::from_be_bytes(*micros), i32::from_be_bytes(*days));
            format!("{months} months {days} days {micros} microseconds")
        }
    })
}

/// Reads an array that a client sent in the binary format: its elements, none for each NULL; none if it is none of one dimension
/// with elements of this type.
pub(crate) fn read_array(bytes: &[u8], element: u32) -> Option<Vec<Option<&[u8]>>> {
    let word = |bytes: &mut &[u8]| -> Option<i32> {
        let (word, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        Some(i32::from_be_bytes(*word))
    };
    let mut rest = bytes;
    let (dimensions, _has_nulls) = (word(&mut rest)?, word(&mut rest)?);
    if u32::try_from(word(&mut rest)?).ok()? != element || !(0..=1).contains(&dimensions) {
        return None;
    }
    let (mut left, mut elements) = (0, Vec::new());
    if dimensions == 1 {
        (left, _) = (word(&mut rest)?, word(&mut rest)?);
    }
    while left > 0 {
        let size = word(&mut rest)?;
        elements.push(match size {
            -1 => None,
            _ => {
                let (value, behind) = rest.split_at_checked(usize::try_from(size).ok()?)?;
                rest = behind;
                Some(value)
            }
        });
        left -= 1;
    }
    rest.is_empty().then_some(elements)
}

fn as_text(value: &Value) -> String {
    let mut out = BytesMut::new();
    text::write(value, Form::Text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn read_numeric(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| pair.try_into().map(u16::from_be_bytes))
        .collect::<Result<_, _>>()
        .ok()?;
    let [count, weight, sign, scale, groups @ ..] = &words[..] else {
        return None;
    };
    // Weights beyond what the engine holds would only make long texts.
    let (weight, scale) = (i32::from(weight.cast_signed()), usize::from(*scale));
    if groups.len() != usize::from(*count) || !(-10..=10).contains(&weight) || scale > 38 {
        return None;
    }
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        _ => return None,
    };
    let group = |place: i32| {
        let at = usize::try_from(weight - place).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let whole: String = (0..=weight.max(0))
        .rev()
        .map(|place| format!("{:04}", group(place)))
        .collect();
    let places = i32::try_from(scale.div_ceil(4)).ok()?;
    let fraction: String = (1..=places)
        .map(|place| format!("{:04}", group(-place)))
        .collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(
        match fraction.get(..scale).filter(|fraction| !fraction.is_empty()) {
            Some(fraction) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{whole}"),
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(value: &Value, form: Form) -> Option<String> {
        let mut out = BytesMut::new();
        write(value, form, &mut out).ok()?;
        read(&out, form)
    }

    #[test]
    fn numbers_are_written_as_their_texts_are() {
        let digits = [
            0,
            1,
            9,
            10,
            9_999,
            10_000,
            12_345_678,
            100_000_000,
            i128::from(u64::MAX) + 1,
            10_i128.pow(37),
            i128::MAX,
        ];
        for digits in digits.into_iter().flat_map(|digits| [digits, -digits]) {
            for scale in 0..=38 {
                let value = Value::Decimal { digits, scale };
                let (mut direct, mut by_text) = (BytesMut::new(), BytesMut::new());
                numeric(&value.to_string(), &mut by_text).unwrap();
                match decimal(digits, scale, &mut direct) {
                    Some(()) => assert_eq!(direct, by_text, "{value}"),
                    None => assert!(
                        direct.is_empty() && digits.unsigned_abs() > 10_u128.pow(36),
                        "{value}"
                    ),
                }
            }
        }
    }

    proptest! {
    #[test]
        fn numbers_come_back(digits in any::<i128>(), scale in 0_u8..=38) {
            let value = Value::Decimal { digits, scale };
            let text = value.to_string();
            prop_assert_eq!(there_and_back(&value, Form::Numeric), Some(text));
        }

        #[test]
        fn no_bytes_are_too_odd_to_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for form in [Form::Bool, Form::Int2, Form::Int4, Form::Int8, Form::Numeric, Form::Float4, Form::Float8, Form::Date, Form::Time, Form::Timestamp, Form::Instant, Form::Text, Form::Bytes, Form::Uuid, Form::Jsonb, Form::Interval] {
                let _ = read(&bytes, form);
            }
            let _ = read_array(&bytes, 23);
        }
    }

    #[test]
    fn values_come_back() {
        for (value, form, text) in [
            (Value::Integer(-7), Form::Int2, "-7"),
            (Value::Integer(0), Form::Numeric, "0"),
            (Value::Integer(10_000), Form::Numeric, "10000"),
            (Value::Date { days: 19_782 }, Form::Date, "2024-02-29"),
            (Value::Time { nanos: 1_500_000 }, Form::Time, "00:00:00.0015"),
            (
                Value::Text("550e8400-e29b-41d4-a716-446655440000".into()),
                Form::Uuid,
                "550e8400-e29b-41d4-a716-446655440000",
            ),
            (Value::Blob(vec![0, 255]), Form::Bytes, "\\x00\\xFF"),
        ] {
            assert_eq!(there_and_back(&value, form).as_deref(), Some(text), "{value:?}");
        }
        assert_eq!(there_and_back(&Value::Integer(70_000), Form::Int2), None);
    }
}
