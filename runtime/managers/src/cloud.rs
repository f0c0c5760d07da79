//! Events in the format of CloudEvents 1.0: <https://github.com/cloudevents/spec>.
//!
//! Read in three modes: *structured* (one JSON object), *batch* (an array of them), *binary* (attributes as headers, the
//! body as data). Extensions are kept; what is wrong is named.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use watershed_schedule::jiff;

/// The largest body of a request, in bytes.
pub const BODY_MAX: usize = 256 * 1024;
/// The largest number of events in one batch, which limits the rows that one request creates.
pub const BATCH_MAX: usize = 1_000;

/// An event in the format of CloudEvents 1.0.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CloudEvent {
    /// The identifier of the event, unique within its source.
    pub id: String,
    /// The source of the event, such as a URI of the system that sent it.
    pub source: String,
    /// The type of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The subject of the event, such as the name of a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The time at which the event happened, as the sender wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The media type of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datacontenttype: Option<String>,
    /// The address of the schema of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataschema: Option<String>,
    /// The attributes that the specification does not define, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Value>,
    /// The data of the event, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

/// The content of an event, in one of two forms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// A JSON value; data in text form are a JSON string.
    Json(Value),
    /// Bytes, encoded in base64.
    Base64(String),
}

/// The reason why events are refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadEvent {
    /// The body is larger than [`BODY_MAX`].
    #[error("the body is larger than {BODY_MAX} bytes")]
    TooLarge,
    /// A batch has more than [`BATCH_MAX`] events.
    #[error("a batch has at most {BATCH_MAX} events")]
    TooMany,
    /// The body is not JSON of the expected form; the text describes the error.
    #[error("the body can't be read: {0}")]
    Body(String),
    /// An attribute is missing or wrong.
    #[error("the attribute \"{attribute}\" {problem}")]
    Attribute {
        /// The name of the missing or invalid attribute.
        attribute: String,
        /// The description of the error.
        problem: &'static str,
    },
}

impl BadEvent {
    fn attribute(attribute: impl Into<String>, problem: &'static str) -> Self {
        Self::Attribute {
            attribute: attribute.into(),
            problem,
        }
    }
}

impl CloudEvent {
    /// Returns an event with the required attributes only.
    pub fn new(id: impl Into<String>, source: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            source: source.into(),
            kind: kind.into(),
            subject: None,
            time: None,
            datacontenttype: None,
            dataschema: None,
            extensions: BTreeMap::new(),
            data: None,
        }
    }

    /// Returns the event with the given subject.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Returns the source and the id in one text, which identifies the event, so that a repetition is recognized.
    pub fn identity(&self) -> String {
        format!("{} {}", self.source, self.id)
    }

    /// Returns the event as one JSON object, in structured mode.
    pub fn to_structured(&self) -> Value {
        let mut object: Map<String, Value> = self.extensions.clone().into_iter().collect();
        let mut put = |name: &str, value: Option<&String>| {
            if let Some(value) = value {
                object.insert(name.to_owned(), Value::String(value.clone()));
            }
        };
        put("specversion", Some(&"1.0".to_owned()));
        put("id", Some(&self.id));
        put("source", Some(&self.source));
        put("type", Some(&self.kind));
        put("subject", self.subject.as_ref());
        put("time", self.time.as_ref());
        put("datacontenttype", self.datacontenttype.as_ref());
        put("dataschema", self.dataschema.as_ref());
        match &self.data {
            Some(Data::Json(value)) => drop(object.insert("data".to_owned(), value.clone())),
            Some(Data::Base64(text)) => put("data_base64", Some(text)),
            None => {}
        }
        Value::Object(object)
    }

    /// Reads events from a request, in the mode that its headers name. Header names must be in lower case.
    ///
    /// # Errors
    /// [`BadEvent`] with the attribute that is wrong.
    pub fn read(headers: &BTreeMap<String, String>, body: &[u8]) -> Result<Vec<Self>, BadEvent> {
        if body.len() > BODY_MAX {
            return Err(BadEvent::TooLarge);
        }
        let content_type = headers.get("content-type").map_or("", String::as_str);
        let media = media_type(content_type);
        if media.starts_with("application/cloudevents-batch") {
            Self::batch(body)
        } else if media.starts_with("application/cloudevents") {
            Ok(vec![Self::structured(body)?])
        } else {
            Ok(vec![Self::binary(headers, body)?])
        }
    }

    /// Reads one event in structured mode, a JSON object.
    ///
    /// # Errors
    /// [`BadEvent`] with the attribute that is wrong.
    pub fn structured(body: &[u8]) -> Result<Self, BadEvent> {
        if body.len() > BODY_MAX {
            return Err(BadEvent::TooLarge);
        }
        let object: Map<String, Value> = serde_json::from_slice(body).map_err(unreadable)?;
        Self::from_object(object)
    }

    /// Reads events in batch mode, a JSON array; one invalid event refuses all.
    ///
    /// # Errors
    /// [`BadEvent`] with the attribute that is wrong.
    pub fn batch(body: &[u8]) -> Result<Vec<Self>, BadEvent> {
        if body.len() > BODY_MAX {
            return Err(BadEvent::TooLarge);
        }
        let objects: Vec<Map<String, Value>> = serde_json::from_slice(body).map_err(unreadable)?;
        if objects.len() > BATCH_MAX {
            return Err(BadEvent::TooMany);
        }
        objects.into_iter().map(Self::from_object).collect()
    }

    fn from_object(mut object: Map<String, Value>) -> Result<Self, BadEvent> {
        let data = match (object.remove("data"), object.remove("data_base64")) {
            (Some(_), Some(_)) => return Err(BadEvent::attribute("data_base64", "stands beside `data`")),
            (Some(value), None) => Some(Data::Json(value)),
            (None, Some(Value::String(text))) => {
                let bytes = BASE64.decode(&text);
                bytes.map_err(|_| BadEvent::attribute("data_base64", "is no base64"))?;
                Some(Data::Base64(text))
            }
            (None, Some(_)) => return Err(BadEvent::attribute("data_base64", "is no text")),
            (None, None) => None,
        };
        let mut attributes = Attributes::default();
        for (name, value) in object {
            // An attribute that is null is one that is not there.
            if !value.is_null() {
                attributes.put(name, value)?;
            }
        }
        attributes.finish(data)
    }

    fn binary(headers: &BTreeMap<String, String>, body: &[u8]) -> Result<Self, BadEvent> {
        let mut attributes = Attributes::default();
        for (header, value) in headers {
            if let Some(name) = header.strip_prefix("ce-") {
                let decoded = percent_decoded(value)
                    .ok_or_else(|| BadEvent::attribute(name, "is no percent-encoded UTF-8"))?;
                attributes.put(name.to_owned(), Value::String(decoded))?;
            }
        }
        let content_type = headers.get("content-type");
        if let Some(content_type) = content_type {
            attributes.put("datacontenttype".to_owned(), Value::String(content_type.clone()))?;
        }
        let data = if body.is_empty() {
            None
        } else if content_type.is_none_or(|text| is_json(text)) {
            Some(Data::Json(serde_json::from_slice(body).map_err(unreadable)?))
        } else {
            Some(match std::str::from_utf8(body) {
                Ok(text) => Data::Json(Value::String(text.to_owned())),
                Err(_) => Data::Base64(BASE64.encode(body)),
            })
        };
        attributes.finish(data)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn unreadable(error: serde_json::Error) -> BadEvent {
    BadEvent::Body(error.to_string())
}

/// The attributes read so far.
#[derive(Default)]
struct Attributes {
    known: BTreeMap<&'static str, String>,
    extensions: BTreeMap<String, Value>,
}

/// The attributes that the specification defines.
const KNOWN: [&str; 8] = [
    "id",
    "source",
    "specversion",
    "type",
    "subject",
    "time",
    "datacontenttype",
    "dataschema",
];

impl Attributes {
    fn put(&mut self, name: String, value: Value) -> Result<(), BadEvent> {
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return Err(BadEvent::attribute(
                name,
                "has a name of other characters than a-z and 0-9",
            ));
        }
        if let Some(known) = KNOWN.into_iter().find(|known| *known == name) {
            let Value::String(text) = value else {
                return Err(BadEvent::attribute(name, "is no text"));
            };
            if text.is_empty() {
                return Err(BadEvent::attribute(name, "is empty"));
            }
            self.known.insert(known, text);
            return Ok(());
        }
        match value {
            Value::String(_) | Value::Bool(_) => {}
            Value::Number(ref number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {}
            Value::Number(_) => return Err(BadEvent::attribute(name, "is no integer of 32 bits")),
            _ => {
                return Err(BadEvent::attribute(
                    name,
                    "is neither text nor number nor boolean",
                ));
            }
        }
        self.extensions.insert(name, value);
        Ok(())
    }

    fn finish(mut self, data: Option<Data>) -> Result<CloudEvent, BadEvent> {
        let mut must = |name: &'static str| {
            let found = self.known.remove(name);
            found.ok_or_else(|| BadEvent::attribute(name, "is missing"))
        };
        let version = must("specversion")?;
        if version != "1.0" {
            return Err(BadEvent::attribute("specversion", "is not \"1.0\""));
        }
        let (id, source, kind) = (must("id")?, must("source")?, must("type")?);
        if source.contains(char::is_whitespace) {
            return Err(BadEvent::attribute("source", "is no URI reference"));
        }
        let time = self.known.remove("time");
        if time
            .as_ref()
            .is_some_and(|time| time.parse::<jiff::Timestamp>().is_err())
        {
            return Err(BadEvent::attribute("time", "is no RFC 3339 timestamp"));
        }
        let dataschema = self.known.remove("dataschema");
        if dataschema
            .as_ref()
            .is_some_and(|uri| !uri.contains(':') || uri.contains(char::is_whitespace))
        {
            return Err(BadEvent::attribute("dataschema", "is no URI"));
        }
        Ok(CloudEvent {
            id,
            source,
            kind,
            subject: self.known.remove("subject"),
            time,
            datacontenttype: self.known.remove("datacontenttype"),
            dataschema,
            extensions: self.extensions,
            data,
        })
    }
}

/// Returns the media type in lower case, without its parameters.
fn media_type(content_type: &str) -> String {
    let (media, _) = content_type.split_once(';').unwrap_or((content_type, ""));
    media.trim().to_ascii_lowercase()
}

fn is_json(content_type: &str) -> bool {
    let media = media_type(content_type);
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

/// Decodes the value of a header: removes quotes around it and decodes `%XX`. Returns none if it is invalid.
fn percent_decoded(value: &str) -> Option<String> {
    let inside = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = inside.unwrap_or(value).as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits)
            .ok()
            .filter(|two| !two.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn structured(value: &Value) -> Result<CloudEvent, BadEvent> {
        CloudEvent::structured(value.to_string().as_bytes())
    }

    fn headers(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    const CE: [(&str, &str); 4] = [
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/lab"),
        ("ce-type", "lab.done"),
    ];

    fn full() -> Value {
        json!({
            "specversion": "1.0", "id": "A-1", "source": "https://example.com/lab", "type": "lab.done",
            "subject": "web", "time": "2018-04-05T17:31:00Z", "comexampleext": "value", "othervalue": 5,
            "flag": true, "unset": null, "datacontenttype": "application/json", "dataschema": "https://x.org/s",
            "data": {"much": [1, 2]},
        })
    }

    /// Checks an event with all attributes, read and stored (rule M12).
    #[test]
    fn an_event_with_everything_is_read_and_comes_back_from_its_stored_form() {
        let event = structured(&full()).unwrap();
        assert_eq!(
            (event.id.as_str(), event.subject.as_deref()),
            ("A-1", Some("web"))
        );
        assert_eq!(event.extensions.len(), 3);
        assert_eq!(event.data, Some(Data::Json(json!({"much": [1, 2]}))));
        let stored = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<CloudEvent>(&stored).unwrap(), event);
    }

    /// Checks that errors name the invalid attribute (rule M12).
    #[test]
    fn what_is_wrong_is_named_by_its_attribute() {
        let wrong = |name: &str, value: Value| {
            let mut event = full();
            event[name] = value;
            match structured(&event).unwrap_err() {
                BadEvent::Attribute { attribute, .. } => attribute,
                other => panic!("{other}"),
            }
        };
        for (name, value) in [
            ("specversion", json!("0.3")),
            ("specversion", json!(1.0)),
            ("id", json!("")),
            ("id", json!(7)),
            ("source", json!("not a uri")),
            ("type", json!(null)),
            ("subject", json!("")),
            ("time", json!("yesterday")),
            ("dataschema", json!("relative")),
            ("othervalue", json!(5_000_000_000_i64)),
            ("othervalue", json!(1.5)),
            ("comexampleext", json!({"deep": 1})),
            ("Upper", json!("x")),
            ("data_base64", json!("AA==")),
        ] {
            assert_eq!(wrong(name, value.clone()), name, "{name} = {value}");
        }
        for name in ["specversion", "id", "source", "type"] {
            let mut event = full();
            event.as_object_mut().unwrap().remove(name);
            let error = structured(&event).unwrap_err();
            assert_eq!(error, BadEvent::attribute(name, "is missing"));
        }
    }

    /// Checks that an event is equal in all three modes (rule M12).
    #[test]
    fn the_three_modes_say_the_same() {
        let object = json!({"specversion": "1.0", "id": "1", "source": "/lab", "type": "lab.done", "subject": "Euro €",
            "datacontenttype": "application/json", "data": {"a": 1}});
        let alone = CloudEvent::read(
            &headers(&[("content-type", "application/cloudevents+json; charset=UTF-8")]),
            object.to_string().as_bytes(),
        );
        let batch = CloudEvent::read(
            &headers(&[("content-type", "application/cloudevents-batch+json")]),
            json!([object]).to_string().as_bytes(),
        );
        let mut pairs = CE.to_vec();
        pairs.extend([
            ("ce-subject", "Euro%20%E2%82%AC"),
            ("content-type", "application/json"),
            ("host", "x"),
        ]);
        let binary = CloudEvent::read(&headers(&pairs), br#"{"a":1}"#);
        let alone = alone.unwrap();
        assert_eq!(alone, batch.unwrap());
        assert_eq!(alone, binary.unwrap());
    }

    #[test]
    fn data_may_be_bytes_text_or_absent() {
        let mut pairs = CE.to_vec();
        assert_eq!(CloudEvent::read(&headers(&pairs), b"").unwrap()[0].data, None);
        pairs.push(("content-type", "application/octet-stream"));
        let bytes = CloudEvent::read(&headers(&pairs), b"\xff\x00").unwrap();
        assert_eq!(bytes[0].data, Some(Data::Base64("/wA=".into())));
        let text = CloudEvent::read(&headers(&pairs), b"plain").unwrap();
        assert_eq!(text[0].data, Some(Data::Json(json!("plain"))));
        let mut event = full();
        event.as_object_mut().unwrap().remove("data");
        event["data_base64"] = json!("/wA=");
        assert_eq!(
            structured(&event).unwrap().data,
            Some(Data::Base64("/wA=".into()))
        );
        event["data_base64"] = json!("!");
        assert_eq!(
            structured(&event).unwrap_err(),
            BadEvent::attribute("data_base64", "is no base64")
        );
    }

    #[test]
    fn bodies_have_bounds_and_batches_are_read_whole_or_not_at_all() {
        let large = vec![b' '; BODY_MAX + 1];
        assert_eq!(CloudEvent::structured(&large).unwrap_err(), BadEvent::TooLarge);
        assert_eq!(CloudEvent::batch(&large).unwrap_err(), BadEvent::TooLarge);
        let many = format!("[{}]", vec!["{}"; BATCH_MAX + 1].join(","));
        assert_eq!(CloudEvent::batch(many.as_bytes()).unwrap_err(), BadEvent::TooMany);
        assert_eq!(CloudEvent::batch(b"[]").unwrap(), []);
        let half = json!([full(), {"id": "1"}]).to_string();
        assert!(CloudEvent::batch(half.as_bytes()).is_err());
        assert!(matches!(CloudEvent::structured(b"[1"), Err(BadEvent::Body(_))));
    }

    #[test]
    fn no_bytes_whatever_make_the_reader_panic() {
        use rand::{Rng, SeedableRng, rngs::SmallRng};
        let mut random = SmallRng::seed_from_u64(7);
        let template = full().to_string().into_bytes();
        for _ in 0..20_000 {
            let mut body = template.clone();
            for _ in 0..random.random_range(1..6) {
                let at = random.random_range(0..body.len());
                body[at] = random.random();
            }
            let header = String::from_utf8_lossy(&body[..random.random_range(0..40)]).into_owned();
            let _ = CloudEvent::structured(&body);
            let mut pairs = headers(&CE);
            pairs.insert("ce-subject".into(), header);
            let _ = CloudEvent::read(&pairs, &body);
        }
    }
}
