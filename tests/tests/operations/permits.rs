//! Time limits of questions, as the operator sets them.

use std::time::Duration;

use serde_json::json;
use watershed::http::Limits;

use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::roles::told;

#[tokio::test(flavor = "multi_thread")]
async fn s_api21_a_question_that_takes_too_long_is_given_up() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    served.service.set_limits(Limits {
        statement_within: Duration::ZERO,
        ..Limits::default()
    });
    let get = async |path: &str| {
        let headers = [("x-caller", "admin@*")];
        served.client.send("GET", path, &headers, None).await
    };
    for path in ["/metrics/delays/bounds", "/api/by_origin?origin=JFK"] {
        let late = get(&format!("{SHOP}{path}")).await;
        assert_eq!(
            (late.status, &late.json()["code"]),
            (504, &json!("deadline-passed")),
            "{path}"
        );
    }
    // Other answers have a limit of their own.
    assert_eq!(get(&format!("{SHOP}/stats")).await.status, 200);
    let page = String::from_utf8_lossy(&get("/metrics").await.body).into_owned();
    assert!(
        page.contains("watershed_http_refused_total{limit=\"statement\"} 2"),
        "{page}"
    );
    served.close().await;
}
