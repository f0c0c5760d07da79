//! Tests of the text forms of names, keys and bytes.

use std::sync::Arc;

use serde::de::value::{Error, StrDeserializer};

use crate::{Key, Kind, Name, Ref, Rule, Uid, Update};

#[test]
fn what_people_read_says_what_it_is() {
    let uid = Uid(uuid::Uuid::from_u128(1));
    assert_eq!(uid.to_string(), "00000000-0000-0000-0000-000000000001");
    assert_eq!(Kind::new("page").as_str(), "page");
    assert_eq!(Key::new("page", "Home").to_string(), "page/Home");
    assert_eq!(Ref::completed("page", "Home").to_string(), "page/Home");
    assert_eq!(
        (
            Rule::DeletesThenRenames.to_string(),
            Rule::StartupBarrier.as_str()
        ),
        ("deletes_then_renames".to_owned(), "startup_barrier")
    );
}

#[test]
fn names_are_ordered_without_their_case() {
    let mut names = ["b", "C", "a", "B1", "Ä"].map(Name::new);
    names.sort();
    assert_eq!(names.each_ref().map(Name::as_str), ["a", "b", "B1", "C", "Ä"]);
    assert!(Name::new("a") < Name::new("B"));
    assert!(names.iter().map(Name::prefix).is_sorted());
    assert_ne!(Name::new("a").prefix(), Name::new("b").prefix());
    assert_eq!(
        Name::new("A long name, longer than that").prefix(),
        Name::new("a LONG name, longer").prefix()
    );
}

#[test]
fn bytes_are_pairs_of_digits() {
    let read = |text: &'static str| crate::types::bytes::deserialize(StrDeserializer::<Error>::new(text));
    let bytes: Arc<[u8]> = [0x00, 0x0a, 0xf0, 0x9c].into();
    assert_eq!(read("000af09C"), Ok(bytes));
    assert_eq!(read(""), Ok([].into()));
    for wrong in ["0", "000", "0g", "g0", "äö"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_update_that_was_written_down_says_the_same() {
    let policy = crate::RetryPolicy::Never;
    let updates = [
        Update::default(),
        Update {
            spec: Some((b"spec".as_slice().into(), 7)),
            owner: Some(None),
            retry: Some(None),
            ..Update::default()
        },
        Update {
            owner: Some(Some(Uid(uuid::Uuid::from_u128(1)))),
            retry: Some(Some(policy)),
            ..Update::default()
        },
    ];
    for update in updates {
        let text = serde_json::to_string(&update).expect("text");
        assert_eq!(
            serde_json::from_str::<Update>(&text).expect("an update"),
            update,
            "{text}"
        );
    }
}
