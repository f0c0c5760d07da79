//! Sprig functions for dates, lists, numbers, texts, paths and encodings.
//!
//! Times are texts in RFC 3339. What makes secrets, asks the network or yields something random is known by name and
//! refused in a run.

use std::collections::BTreeMap;

use gotmpl::Value;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

mod refused;
mod times;

pub(super) use self::refused::REFUSED;
use self::times::{formatted, in_zone, moved, stamp, strftime, timestamp};
use super::values::{Function, integer, text};

/// Functions that don't depend on the project, by name.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    // Dates.
    ("now", |a| a.is_empty().then(|| stamp(Timestamp::now()))),
    ("date", |a| formatted(text(a.first()?), a.get(1)?)),
    ("htmlDate", |a| formatted("2006-01-02".to_owned(), a.first()?)),
    ("dateInZone", |a| match a {
        [layout, at, zone] => in_zone(&text(layout), at, &text(zone)),
        _ => None,
    }),
    ("dateModify", |a| moved(&text(a.first()?), a.get(1)?)),
    ("date_modify", |a| moved(&text(a.first()?), a.get(1)?)),
    ("toDate", |a| match a {
        [layout, written] => {
            let format = strftime(&text(layout));
            let read = jiff::fmt::strtime::parse(format, text(written)).ok()?;
            let at = read.to_timestamp().ok().or_else(|| {
                let date = read
                    .to_datetime()
                    .or_else(|_| Ok::<_, jiff::Error>(read.to_date()?.into()));
                Some(date.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
            });
            Some(stamp(at?))
        }
        _ => None,
    }),
    ("unixEpoch", |a| {
        Some(timestamp(a.first()?)?.as_second().to_string().into())
    }),
    ("ago", |a| {
        let past = Timestamp::now().duration_since(timestamp(a.first()?)?);
        Some(format!("{}s", past.as_secs()).into())
    }),
    ("duration", |a| {
        Some(format!("{:#}", SignedDuration::from_secs(integer(a.first()?)?)).into())
    }),
    // Lists.
    ("append", |a| match a {
        [Value::List(items), item] => Some(items.iter().chain([item]).cloned().collect::<Vec<_>>().into()),
        _ => None,
    }),
    ("prepend", |a| match a {
        [Value::List(items), item] => Some(
            [item]
                .into_iter()
                .chain(items.iter())
                .cloned()
                .collect::<Vec<_>>()
                .into(),
        ),
        _ => None,
    }),
    ("concat", |a| {
        let lists = a.iter().map(|list| match list {
            Value::List(items) => Some(items.iter().cloned().collect::<Vec<_>>()),
            _ => None,
        });
        Some(lists.collect::<Option<Vec<_>>>()?.concat().into())
    }),
    ("rest", |a| {
        items(a, |items| items.iter().skip(1).cloned().collect())
    }),
    ("initial", |a| {
        items(a, |items| {
            items
                .iter()
                .take(items.len().saturating_sub(1))
                .cloned()
                .collect()
        })
    }),
    ("reverse", |a| {
        items(a, |items| items.iter().rev().cloned().collect())
    }),
    ("compact", |a| {
        items(a, |items| {
            items.iter().filter(|one| one.is_truthy()).cloned().collect()
        })
    }),
    ("uniq", |a| {
        items(a, |items| {
            let mut seen = Vec::new();
            items
                .iter()
                .filter(|one| {
                    !seen.contains(&text(one)) && {
                        seen.push(text(one));
                        true
                    }
                })
                .cloned()
                .collect()
        })
    }),
    ("without", |a| match a {
        [Value::List(items), out @ ..] => {
            let out: Vec<String> = out.iter().map(text).collect();
            Some(
                items
                    .iter()
                    .filter(|one| !out.contains(&text(one)))
                    .cloned()
                    .collect::<Vec<_>>()
                    .into(),
            )
        }
        _ => None,
    }),
    ("sortAlpha", |a| {
        items(a, |items| {
            let mut texts: Vec<String> = items.iter().map(text).collect();
            texts.sort();
            texts.into_iter().map(Value::from).collect()
        })
    }),
    ("toStrings", |a| {
        items(a, |items| {
            items.iter().map(|one| Value::from(text(one))).collect()
        })
    }),
    ("tuple", |a| Some(a.to_vec().into())),
    ("until", |a| span(0, integer(a.first()?)?, 1)),
    ("untilStep", |a| match a {
        [from, to, step] => span(integer(from)?, integer(to)?, integer(step)?),
        _ => None,
    }),
    ("all", |a| Some(Value::Bool(a.iter().all(Value::is_truthy)))),
    ("any", |a| Some(Value::Bool(a.iter().any(Value::is_truthy)))),
    // Mappings.
    ("keys", |a| match a {
        [Value::Map(map)] => Some(
            map.keys()
                .map(|key| Value::from(key.to_string()))
                .collect::<Vec<_>>()
                .into(),
        ),
        _ => None,
    }),
    ("values", |a| match a {
        [Value::Map(map)] => Some(map.values().cloned().collect::<Vec<_>>().into()),
        _ => None,
    }),
    ("pick", |a| chosen(a, true)),
    ("omit", |a| chosen(a, false)),
    ("dig", |a| match a {
        [path @ .., default, Value::Map(map)] => {
            let mut at = Value::Map(map.clone());
            for key in path {
                let Value::Map(map) = &at else {
                    return Some(default.clone());
                };
                match map.get(text(key).as_str()) {
                    Some(value) => at = value.clone(),
                    None => return Some(default.clone()),
                }
            }
            Some(at)
        }
        _ => None,
    }),
    // Numbers.
    ("add1", |a| Some(Value::Int(integer(a.first()?)?.checked_add(1)?))),
    ("biggest", |a| {
        Some(Value::Int(
            a.iter()
                .map(integer)
                .collect::<Option<Vec<_>>>()?
                .into_iter()
                .max()?,
        ))
    }),
    ("addf", |a| floats(a, |a, b| a + b)),
    ("subf", |a| floats(a, |a, b| a - b)),
    ("mulf", |a| floats(a, |a, b| a * b)),
    ("divf", |a| floats(a, |a, b| a / b)),
    ("maxf", |a| floats(a, f64::max)),
    ("minf", |a| floats(a, f64::min)),
    ("floor", |a| Some(Value::Float(float(a.first()?)?.floor()))),
    ("ceil", |a| Some(Value::Float(float(a.first()?)?.ceil()))),
    ("round", |a| {
        let digits = i32::try_from(a.get(1).map_or(Some(0), integer)?).ok()?;
        let scale = 10_f64.powi(digits);
        Some(Value::Float((float(a.first()?)? * scale).round() / scale))
    }),
    ("atoi", |a| {
        Some(Value::Int(text(a.first()?).trim().parse().unwrap_or(0)))
    }),
    // Texts.
    ("abbrev", |a| {
        let (most, word) = (usize::try_from(integer(a.first()?)?).ok()?, text(a.get(1)?));
        if word.chars().count() <= most || most < 4 {
            return Some(word.into());
        }
        Some(format!("{}...", word.chars().take(most - 3).collect::<String>()).into())
    }),
    ("abbrevboth", |a| {
        let (from, most) = (
            usize::try_from(integer(a.first()?)?).ok()?,
            usize::try_from(integer(a.get(1)?)?).ok()?,
        );
        Some(
            text(a.get(2)?)
                .chars()
                .skip(from)
                .take(most)
                .collect::<String>()
                .into(),
        )
    }),
    ("trunc", |a| {
        let (most, word) = (integer(a.first()?)?, text(a.get(1)?));
        let length = i64::try_from(word.chars().count()).ok()?;
        let skipped = usize::try_from(if most < 0 { (length + most).max(0) } else { 0 }).ok()?;
        let taken = usize::try_from(most.checked_abs()?).ok()?;
        Some(word.chars().skip(skipped).take(taken).collect::<String>().into())
    }),
    ("substr", |a| {
        let (from, to, word) = (integer(a.first()?)?.max(0), integer(a.get(1)?)?, text(a.get(2)?));
        let to = if to < 0 { i64::MAX } else { to };
        let taken = usize::try_from(to.saturating_sub(from).max(0)).ok()?;
        Some(
            word.chars()
                .skip(usize::try_from(from).ok()?)
                .take(taken)
                .collect::<String>()
                .into(),
        )
    }),
    ("repeat", |a| {
        let (times, word) = (usize::try_from(integer(a.first()?)?).ok()?, text(a.get(1)?));
        (times.checked_mul(word.len())? <= MOST_BYTES).then(|| word.repeat(times).into())
    }),
    ("untitle", |a| {
        let word = text(a.first()?);
        let mut chars = word.chars();
        let first = chars.next().into_iter().flat_map(char::to_lowercase);
        Some(first.chain(chars).collect::<String>().into())
    }),
    ("swapcase", |a| {
        let swapped = |c: char| {
            if c.is_uppercase() {
                c.to_lowercase().collect::<String>()
            } else {
                c.to_uppercase().collect()
            }
        };
        Some(text(a.first()?).chars().map(swapped).collect::<String>().into())
    }),
    ("snakecase", |a| Some(cased(&text(a.first()?), "_").into())),
    ("kebabcase", |a| Some(cased(&text(a.first()?), "-").into())),
    ("initials", |a| {
        let word = text(a.first()?);
        Some(
            word.split_whitespace()
                .filter_map(|word| word.chars().next())
                .collect::<String>()
                .into(),
        )
    }),
    ("plural", |a| match a {
        [one, many, count] => Some(if integer(count)? == 1 {
            one.clone()
        } else {
            many.clone()
        }),
        _ => None,
    }),
    ("indent", |a| {
        Some(indented(integer(a.first()?)?, &text(a.get(1)?))?.into())
    }),
    ("nindent", |a| {
        Some(format!("\n{}", indented(integer(a.first()?)?, &text(a.get(1)?))?).into())
    }),
    ("trimall", |a| {
        let set = text(a.first()?);
        Some(text(a.get(1)?).trim_matches(|c| set.contains(c)).into())
    }),
    ("split", |a| {
        let separator = text(a.first()?);
        let whole = text(a.get(1)?);
        let parts = whole.split(separator.as_str()).enumerate();
        let parts = parts.map(|(at, part)| (format!("_{at}"), Value::from(part.to_owned())));
        Some(parts.collect::<BTreeMap<_, _>>().into())
    }),
    ("regexMatch", |a| {
        Some(Value::Bool(
            regex::Regex::new(&text(a.first()?))
                .ok()?
                .is_match(&text(a.get(1)?)),
        ))
    }),
    ("regexFind", |a| {
        let whole = text(a.get(1)?);
        let found = regex::Regex::new(&text(a.first()?))
            .ok()?
            .find(&whole)
            .map(|found| found.as_str().to_owned());
        Some(found.unwrap_or_default().into())
    }),
    ("regexReplaceAll", |a| match a {
        [pattern, whole, by] => {
            let pattern = regex::Regex::new(&text(pattern)).ok()?;
            Some(
                pattern
                    .replace_all(&text(whole), text(by).as_str())
                    .into_owned()
                    .into(),
            )
        }
        _ => None,
    }),
    ("regexQuoteMeta", |a| {
        Some(regex::escape(&text(a.first()?)).into())
    }),
    // Types, paths, encodings.
    ("kindOf", |a| Some(kind(a.first()?).into())),
    ("typeOf", |a| Some(kind(a.first()?).into())),
    ("kindIs", |a| {
        Some(Value::Bool(kind(a.get(1)?) == text(a.first()?)))
    }),
    ("typeIs", |a| {
        Some(Value::Bool(kind(a.get(1)?) == text(a.first()?)))
    }),
    ("deepEqual", |a| match a {
        [one, other] => Some(Value::Bool(json(one) == json(other))),
        _ => None,
    }),
    ("toJson", |a| Some(json(a.first()?).to_string().into())),
    ("toRawJson", |a| Some(json(a.first()?).to_string().into())),
    ("toPrettyJson", |a| Some(format!("{:#}", json(a.first()?)).into())),
    ("base", |a| {
        Some(text(a.first()?).rsplit('/').next().unwrap_or_default().into())
    }),
    ("dir", |a| {
        Some(
            text(a.first()?)
                .rsplit_once('/')
                .map_or(".", |(folder, _)| folder)
                .to_owned()
                .into(),
        )
    }),
    ("ext", |a| {
        let path = text(a.first()?);
        let name = path.rsplit('/').next().unwrap_or_default();
        Some(
            name.rsplit_once('.')
                .map_or(String::new(), |(_, end)| format!(".{end}"))
                .into(),
        )
    }),
    ("clean", |a| {
        Some(
            text(a.first()?)
                .split('/')
                .filter(|part| *part != ".")
                .collect::<Vec<_>>()
                .join("/")
                .into(),
        )
    }),
    ("isAbs", |a| Some(Value::Bool(text(a.first()?).starts_with('/')))),
    ("b64enc", |a| Some(base64(text(a.first()?).as_bytes()).into())),
    ("b64dec", |a| from_base64(&text(a.first()?)).map(Into::into)),
];

/// The largest size in bytes of a text made by repetition.
const MOST_BYTES: usize = 1 << 20;
/// The largest number of items of a generated list.
const MOST_ITEMS: i64 = 100_000;
fn items(arguments: &[Value], make: impl FnOnce(&[Value]) -> Vec<Value>) -> Option<Value> {
    match arguments {
        [Value::List(items)] => Some(make(items).into()),
        _ => None,
    }
}

fn span(from: i64, to: i64, step: i64) -> Option<Value> {
    let count = if step == 0 {
        return None;
    } else {
        to.checked_sub(from)?.checked_div(step)?
    };
    if count > MOST_ITEMS {
        return None;
    }
    let mut found = Vec::new();
    let mut at = from;
    while if step > 0 { at < to } else { at > to } {
        found.push(Value::Int(at));
        at = at.checked_add(step)?;
    }
    Some(found.into())
}

fn chosen(arguments: &[Value], keep: bool) -> Option<Value> {
    let [Value::Map(map), names @ ..] = arguments else {
        return None;
    };
    let names: Vec<String> = names.iter().map(text).collect();
    let chosen = map
        .iter()
        .filter(|(key, _)| names.contains(&key.to_string()) == keep);
    Some(
        chosen
            .map(|(key, value)| (key.to_string(), value.clone()))
            .collect::<BTreeMap<_, _>>()
            .into(),
    )
}

fn float(value: &Value) -> Option<f64> {
    text(value).trim().parse().ok()
}

fn floats(arguments: &[Value], step: impl Fn(f64, f64) -> f64) -> Option<Value> {
    let numbers = arguments.iter().map(float).collect::<Option<Vec<_>>>()?;
    numbers.into_iter().reduce(step).map(Value::Float)
}

/// Returns a name in lower case with its words joined: `HTTPStatus code` becomes `http_status_code`.
fn cased(name: &str, joint: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            was_lower = false;
            words.push(String::new());
            continue;
        }
        if words.is_empty() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words.join(joint)
}

fn indented(by: i64, whole: &str) -> Option<String> {
    let blank = " ".repeat(usize::try_from(by).ok().filter(|by| *by <= 1_000)?);
    Some(
        whole
            .lines()
            .map(|line| format!("{blank}{line}"))
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        _ => "interface",
    }
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::String(value) => value.to_string().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(map) => map
            .iter()
            .map(|(key, value)| (key.to_string(), json(value)))
            .collect(),
        Value::Nil => serde_json::Value::Null,
        other => other.to_string().into(),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let letter = |bits: u32| char::from(ALPHABET[(bits & 63) as usize]);
    let mut written = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letters = [bits >> 18, bits >> 12, bits >> 6, bits].map(letter);
        written.extend(letters.iter().take(chunk.len() + 1));
        written.push_str(&"="[..usize::from(chunk.len() < 3)]);
        written.push_str(&"="[..usize::from(chunk.len() < 2)]);
    }
    written
}

fn from_base64(written: &str) -> Option<String> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in written.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 255).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &[Value]) -> String {
        let (_, function) = FUNCTIONS.iter().find(|(known, _)| *known == name).expect(name);
        function(arguments).map_or("none".to_owned(), |value| value.to_string())
    }

    #[test]
    fn dates_are_written_by_layouts_of_go() {
        let at = Value::from("2024-03-05T06:07:08Z");
        assert_eq!(
            call("date", &["2006-01-02 15:04:05".into(), at.clone()]),
            "2024-03-05 06:07:08"
        );
        assert_eq!(call("date", &["Mon Jan _2".into(), at.clone()]), "Tue Mar  5");
        assert_eq!(
            call("dateModify", &["-24h".into(), at.clone()]),
            "2024-03-04T06:07:08Z"
        );
        assert_eq!(
            call("toDate", &["2006-01-02".into(), "2024-03-05".into()]),
            "2024-03-05T00:00:00Z"
        );
        assert_eq!(call("unixEpoch", &[at]), "1709618828");
        assert_eq!(call("htmlDate", &[Value::Int(0)]), "1970-01-01");
    }

    #[test]
    fn texts_and_encodings_keep_what_they_hold() {
        for whole in ["", "a", "ab", "abc", "größe"] {
            assert_eq!(
                call("b64dec", &[Value::from(call("b64enc", &[whole.into()]))]),
                whole
            );
        }
        assert_eq!(call("b64enc", &["ab".into()]), "YWI=");
        assert_eq!(call("snakecase", &["FirstName two".into()]), "first_name_two");
        assert_eq!(call("trunc", &[Value::Int(-2), "abcd".into()]), "cd");
        assert_eq!(call("repeat", &[Value::Int(i64::MAX), "a".into()]), "none");
        assert_eq!(call("until", &[Value::Int(i64::MAX)]), "none");
    }

    #[test]
    fn no_name_stands_in_both_lists() {
        let twice = REFUSED
            .iter()
            .find(|name| FUNCTIONS.iter().any(|(known, _)| known == *name));
        assert_eq!(twice, None);
    }
}
