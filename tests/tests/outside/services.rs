//! Services that answer without end, late, from elsewhere or as somebody else.

use std::process::Command;
use std::time::Duration;

use watershed_outside::http::{Client, Destination, Egress, Failure, Method, Settings, Url};

use crate::callers::{CALLERS, Caller, KEPT};
use crate::host::{Host, Says, assert_bounded};
use crate::tls::certified;

/// The variable that tells the callers of a test in a process of their own where to call.
const CALLED: &str = "WATERSHED_TEST_CALLED";

#[tokio::test(flavor = "multi_thread")]
async fn of_a_body_without_end_a_bounded_part_is_read() {
    for caller in CALLERS {
        let host = Host::start(Says::Endless("HTTP/1.1 200 OK\r\n\r\n", "x".repeat(8192)));
        let ended = caller.call(&host.url(), None).await;
        match caller {
            // The receiver has said that it has the message; of a file the head is asked for alone.
            Caller::Webhook | Caller::Objects => assert_eq!(ended, Ok(())),
            Caller::Step => assert!(ended.unwrap_err().contains("longer than"), "{caller:?}"),
            Caller::Plain => assert_eq!(ended, Err(format!("cut off after {KEPT}"))),
        }
        assert_bounded(host.left_after());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_end_is_refused() {
    for caller in CALLERS {
        let again = format!("x-more: {}\r\n", "x".repeat(1000));
        let host = Host::start(Says::Endless("HTTP/1.1 200 OK\r\n", again));
        caller.call(&host.url(), None).await.expect_err("no head");
        assert_bounded(host.left_after());
    }
}

/// Only objects follow: web servers move files.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_followed_by_those_alone_that_say_so() {
    for caller in CALLERS {
        let inner = Host::start(Says::head("200 OK", ""));
        let outer = Host::at(2, Says::moved(&inner.url()));
        let ended = caller.call(&outer.url(), None).await;
        let follows = caller == Caller::Objects;
        assert_eq!(inner.asked().len(), usize::from(follows), "{caller:?}");
        match caller {
            Caller::Webhook | Caller::Step => {
                assert!(
                    ended.unwrap_err().contains("redirects are not followed"),
                    "{caller:?}"
                );
            }
            // A redirect is an answer like any other, unless it is followed.
            Caller::Objects | Caller::Plain => assert_eq!(ended, Ok(()), "{caller:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_name_or_of_nobody_is_refused_before_anything_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorities.pem");
    for (name, is_trusted) in [("other.example", true), ("localhost", false), ("localhost", true)] {
        let (certificate, config) = certified(&[name]);
        std::fs::write(&file, certificate).unwrap();
        let host = Host::secure(Says::head("200 OK", ""), config);
        let url = format!("https://localhost:{}/", host.address.port());
        for caller in CALLERS {
            let authorities = is_trusted.then(|| file.clone());
            let before = host.asked().len();
            let ended = caller.call(&url, authorities).await;
            // Those of messages and steps trust the web's authorities alone.
            let takes = matches!(caller, Caller::Objects | Caller::Plain);
            let is_good = name == "localhost" && is_trusted && takes;
            assert_eq!(ended.is_ok(), is_good, "{caller:?} {name} {ended:?}");
            assert_eq!(host.asked().len() - before, usize::from(is_good), "{caller:?}");
        }
    }
}

/// The variable with the URL that a restricted caller of the test below calls.
const RESTRICTED: &str = "WATERSHED_TEST_RESTRICTED";

#[tokio::test(flavor = "multi_thread")]
async fn s_api35_a_restricted_policy_uses_no_proxy_of_the_environment() {
    if let Ok(url) = std::env::var(RESTRICTED) {
        let local = Egress::public_and([Destination::Network("127.0.0.0/8".parse().unwrap())]);
        for caller in CALLERS {
            caller.call_under(&local, &url, None).await.unwrap();
        }
        return;
    }
    let (host, proxy) = (
        Host::start(Says::head("200 OK", "")),
        Host::start(Says::head("200 OK", "")),
    );
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "services::s_api35_a_restricted_policy_uses_no_proxy_of_the_environment",
            "--exact",
        ])
        .env(RESTRICTED, host.url())
        .env("http_proxy", proxy.url())
        .env("all_proxy", proxy.url())
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .status();
    assert!(status.unwrap().success());
    assert_eq!((proxy.asked().len(), host.asked().len()), (0, CALLERS.len()));
}

/// Only objects use it, as the engine does that reads them.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_in_the_environment_is_used_by_those_alone_that_say_so() {
    if let Ok(url) = std::env::var(CALLED) {
        for caller in CALLERS {
            caller.call(&url, None).await.unwrap();
        }
        return;
    }
    let (host, proxy) = (
        Host::start(Says::head("200 OK", "")),
        Host::start(Says::head("200 OK", "")),
    );
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "services::a_proxy_in_the_environment_is_used_by_those_alone_that_say_so",
            "--exact",
        ])
        .env(CALLED, host.url())
        .env("http_proxy", proxy.url())
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .status();
    assert!(status.unwrap().success());
    let proxied = proxy.asked();
    assert_eq!(proxied.len(), 1, "{proxied:?}");
    let whole = format!("HEAD {} HTTP/1.1", host.url());
    assert!(proxied[0].starts_with(&whole), "{proxied:?}");
    assert_eq!(host.asked().len(), CALLERS.len() - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_is_left_at_the_deadline() {
    let begins = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{";
    for text in ["", "HTTP/1.1 200 OK\r\n", begins] {
        let host = Host::start(Says::Text(text.to_owned()));
        let client = Client::new(Settings {
            within: Some(Duration::from_millis(300)),
            ..Settings::default()
        });
        let client = client.unwrap();
        let request = client.request(Method::GET, Url::parse(&host.url()).unwrap());
        let failure = match request.send().await {
            Ok(answer) => answer.body().await.unwrap_err().cause,
            Err(error) => Some(error),
        };
        let failure = failure.expect("it is short enough").failure();
        assert_eq!(failure, Failure::Timeout, "{text}");
        assert_eq!(host.left_after(), text.len());
    }
    let host = Host::start(Says::Text(begins.to_owned()));
    // The receiver has said that it has the message.
    assert_eq!(Caller::Webhook.call(&host.url(), None).await, Ok(()));
    assert_eq!(host.left_after(), begins.len());
    let url = host.url();
    let dropped = Caller::Step.call(&url, None);
    let dropped = tokio::time::timeout(Duration::from_millis(300), dropped);
    dropped.await.expect_err("its deadline is that of the step");
    assert_eq!(host.left_after(), begins.len());
}
