//! Messages of resources and of the API, and their Rust types.
//!
//! The types in [`v1`] are generated from the `.proto` files beside this crate (`scripts/messages`). Maps are [`BTreeMap`]s, so equal
//! messages have equal bytes. [`Value`] has constructors and a conversion to JSON; the rest is plain data.
//!
//! [`BTreeMap`]: std::collections::BTreeMap
//! [`Value`]: v1::Value

mod values;

/// The first version of the messages.
#[allow(
    missing_docs,
    clippy::all,
    reason = "generated; what is documented there carries over"
)]
pub mod v1 {
    include!("../generated/watershed.v1.rs");
}

pub use prost::Message;
pub use v1::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glance_reads_what_the_whole_message_says() {
        let spec = ModelSpec {
            defined_as_source: true,
            freshness: Some(Freshness {
                warn_seconds: Some(7),
                ..Freshness::default()
            }),
            inputs: vec!["a".into()],
            timeout_seconds: 9,
            ..ModelSpec::default()
        };
        let glance = ModelSpecGlance::decode(spec.encode_to_vec().as_slice()).unwrap();
        assert_eq!(
            (glance.defined_as_source, glance.freshness),
            (true, spec.freshness)
        );
        let state = ModelState {
            result_connector: "duckdb".into(),
            result_table: "daily".into(),
            result_kind: OutputKind::View.into(),
            build_id: "7".into(),
            rows: Some(3),
            test_results: vec![TestResult {
                name: "small".into(),
                ..TestResult::default()
            }],
            ..ModelState::default()
        };
        let glance = ModelStateGlance::decode(state.encode_to_vec().as_slice()).unwrap();
        assert_eq!(
            (glance.result_connector, glance.result_table, glance.result_kind),
            (state.result_connector, state.result_table, state.result_kind)
        );
        assert_eq!(
            (glance.rows, glance.test_results),
            (state.rows, state.test_results)
        );
    }
}
