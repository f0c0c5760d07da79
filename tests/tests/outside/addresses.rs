//! Addresses that are refused: by name, in figures, and in redirects.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use watershed_outside::http::{
    CallError, Client, Destination, Egress, Failure, Method, Names, Refused, Resolving, Route, Settings, Url,
};

use crate::callers::{CALLERS, Caller};
use crate::host::{Host, Says};

/// The address that the operator has listed.
const OUTSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Answers each look-up with the next of its lists, then always with the last one.
#[derive(Debug)]
struct Changing {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names for Changing {
    fn look_up(&self, _: &str) -> Resolving {
        let turn = self
            .asked
            .fetch_add(1, Ordering::SeqCst)
            .min(self.answers.len() - 1);
        let found = self.answers[turn].clone();
        Box::pin(async move { Ok(found) })
    }
}

fn names(answers: &[&[IpAddr]]) -> Arc<Changing> {
    Arc::new(Changing {
        answers: answers.iter().map(|answer| answer.to_vec()).collect(),
        asked: AtomicUsize::new(0),
    })
}

/// Returns a policy that lists the address of "outside" alone.
fn listed() -> Egress {
    Egress::public_and([Destination::Network(OUTSIDE.into())])
}

fn guarded(names: Arc<Changing>, redirects: usize) -> Client {
    of_policy(listed(), names, redirects)
}

fn of_policy(egress: Egress, names: Arc<Changing>, redirects: usize) -> Client {
    let settings = Settings {
        redirects,
        route: Route::Direct(egress),
        names,
        ..Settings::default()
    };
    Client::new(settings).unwrap()
}

async fn get(client: &Client, url: &str) -> Result<u16, CallError> {
    let url = Url::parse(url).unwrap();
    let answer = client.request(Method::GET, url).send().await?;
    Ok(answer.status().as_u16())
}

fn assert_refused(ended: &Result<u16, CallError>, expected: Refused) {
    let error = ended.as_ref().expect_err("it is refused");
    assert_eq!(error.failure(), Failure::Refused(expected), "{error:?}");
}

/// Returns servers inside and outside at one port, so that a URL fits both.
fn both() -> (Host, Host) {
    loop {
        let outside = Host::at(2, Says::head("200 OK", "connection: close\r\n"));
        let inside = Host::at_port(1, outside.address.port(), Says::head("200 OK", ""));
        if let Some(inside) = inside {
            return (inside, outside);
        }
    }
}

#[tokio::test]
async fn s_api35_a_name_that_resolves_anew_is_connected_to_where_it_was_checked() {
    let (inside, outside) = both();
    let url = format!("http://hook.example:{}/", outside.address.port());
    let changing = names(&[&[OUTSIDE], &[INSIDE]]);
    let client = guarded(Arc::clone(&changing), 0);
    assert_eq!(get(&client, &url).await.unwrap(), 200);
    // One look-up for a connection: no second answer comes between check and connect.
    assert_eq!(changing.asked.load(Ordering::SeqCst), 1);
    assert_eq!((outside.asked().len(), inside.asked().len()), (1, 0));
    assert_refused(&get(&client, &url).await, Refused::Unencrypted);
    let encrypted = url.replace("http:", "https:");
    assert_refused(&get(&client, &encrypted).await, Refused::Address(INSIDE));
    assert_eq!(changing.asked.load(Ordering::SeqCst), 3);
    assert_eq!((outside.asked().len(), inside.asked().len()), (1, 0));
}

#[tokio::test]
async fn of_several_addresses_of_a_name_only_those_that_are_allowed_are_used() {
    let (inside, outside) = both();
    let url = format!("http://hook.example:{}/", outside.address.port());
    let client = guarded(names(&[&[INSIDE, OUTSIDE]]), 0);
    assert_eq!(get(&client, &url).await.unwrap(), 200);
    assert_eq!((outside.asked().len(), inside.asked().len()), (1, 0));
}

#[tokio::test]
async fn s_api35_an_address_in_figures_is_refused_in_every_spelling() {
    let host = Host::start(Says::head("200 OK", ""));
    let client = guarded(names(&[&[OUTSIDE]]), 0);
    for spelling in [
        "127.0.0.1",
        "127.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "ann:secret@127.0.0.1",
        "hook.example@127.0.0.1",
    ] {
        let rest = format!("{spelling}:{}/", host.address.port());
        assert_refused(
            &get(&client, &format!("https://{rest}")).await,
            Refused::Address(INSIDE),
        );
        assert_refused(
            &get(&client, &format!("http://{rest}")).await,
            Refused::Unencrypted,
        );
    }
    for spelling in [
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
    ] {
        let url = format!("https://[{spelling}]:{}/", host.address.port());
        assert_refused(
            &get(&client, &url).await,
            Refused::Address(spelling.parse().unwrap()),
        );
    }
    for none in [
        "[fe80::1%25lo]",
        "[fe80::1%lo]",
        "[::1",
        "127.0.0.256",
        "0x1ffffffff",
    ] {
        assert!(Url::parse(&format!("https://{none}/")).is_err(), "{none}");
    }
    assert_eq!(host.asked().len(), 0);
}

#[tokio::test]
async fn s_api35_a_redirect_is_an_answer_and_is_followed_nowhere() {
    let inside = Host::start(Says::head("200 OK", ""));
    let port = inside.address.port();
    for to in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://inner.example:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1:25/".to_owned(),
        "//127.0.0.1/".to_owned(),
    ] {
        let outside = Host::at(2, Says::moved(&to));
        let client = guarded(names(&[&[INSIDE]]), 3);
        assert_eq!(get(&client, &outside.url()).await.unwrap(), 302, "{to}");
        assert_eq!((outside.asked().len(), inside.asked().len()), (1, 0), "{to}");
    }
}

#[tokio::test]
async fn redirects_end_after_as_many_as_are_followed() {
    let host = Host::at(2, Says::moved("/again"));
    let client = of_policy(Egress::default(), names(&[&[OUTSIDE]]), 3);
    let error = get(&client, &host.url()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::Broken);
    assert_eq!(host.asked().len(), 4);
}

#[tokio::test]
async fn s_api35_a_listed_host_is_reached_at_its_port_alone_and_shares_no_connection() {
    let (inside, other) = (
        Host::start(Says::head("200 OK", "")),
        Host::start(Says::head("200 OK", "")),
    );
    let port = inside.address.port();
    let egress = Egress::public_and([Destination::Host {
        name: "Hook.example.".to_owned(),
        port,
    }]);
    let client = of_policy(egress, names(&[&[INSIDE]]), 0);
    for host in ["hook.example", "HOOK.example", "hook.example."] {
        assert_eq!(
            get(&client, &format!("http://{host}:{port}/")).await.unwrap(),
            200
        );
    }
    for (host, port) in [
        ("hook.example", other.address.port()),
        ("look.example", port),
        ("127.0.0.1", port),
    ] {
        assert_refused(
            &get(&client, &format!("http://{host}:{port}/")).await,
            Refused::Unencrypted,
        );
        let encrypted = get(&client, &format!("https://{host}:{port}/")).await;
        assert_refused(&encrypted, Refused::Address(INSIDE));
    }
    assert_eq!(other.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api35_every_caller_of_services_asks_the_policy() {
    let inside = Host::start(Says::head("200 OK", ""));
    let nothing = Egress::public_and([]);
    for caller in CALLERS {
        for url in [inside.url(), inside.url().replace("http:", "https:")] {
            let refused = caller.call_under(&nothing, &url, None).await.unwrap_err();
            assert!(refused.contains("not allowed"), "{caller:?}: {refused}");
        }
    }
    assert_eq!(inside.asked().len(), 0);
    let local = Egress::public_and([Destination::Network("127.0.0.0/8".parse().unwrap())]);
    let says = Says::Text("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_owned());
    for caller in [Caller::Webhook, Caller::Step, Caller::Plain] {
        let host = Host::start(says.clone());
        caller.call_under(&local, &host.url(), None).await.unwrap();
        assert_eq!(host.asked().len(), 1);
    }
}

#[tokio::test]
async fn s_api35_a_library_gets_a_client_for_allowed_addresses_alone() {
    let url = |text: &str| Url::parse(text).unwrap();
    let client = guarded(names(&[&[OUTSIDE]]), 0);
    assert!(client.shared(&url("https://127.0.0.1/")).is_err());
    assert!(client.shared(&url("http://127.0.0.1/")).is_err());
    assert!(client.shared(&url("http://127.0.0.2/")).is_ok());
    let any = Client::new(Settings::default()).unwrap();
    assert!(any.shared(&url("http://127.0.0.1/")).is_ok());
}
