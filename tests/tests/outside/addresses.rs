//! Addresses that are refused: by name, in figures, and after redirects.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use watershed_outside::http::{
    Addresses, CallError, Client, Failure, Method, Names, Refused, Resolving, Route, Settings, Url,
};

use crate::host::{Host, Says};

/// The address that stands for one of the internet: an exception.
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

fn guarded(names: Arc<Changing>, redirects: usize) -> Client {
    let settings = Settings {
        redirects,
        route: Route::Direct(Addresses::Public {
            except: vec![OUTSIDE],
        }),
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

fn assert_refused(ended: &Result<u16, CallError>, address: IpAddr) {
    let error = ended.as_ref().expect_err("it is refused");
    assert_eq!(error.failure(), Failure::Refused(Refused(address)), "{error:?}");
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
async fn a_name_that_resolves_anew_is_connected_to_where_it_was_checked() {
    let (inside, outside) = both();
    let url = format!("http://hook.example:{}/", outside.address.port());
    let changing = names(&[&[OUTSIDE], &[INSIDE]]);
    let client = guarded(Arc::clone(&changing), 0);
    assert_eq!(get(&client, &url).await.unwrap(), 200);
    // One look-up for a connection: no second answer comes between check and connect.
    assert_eq!(changing.asked.load(Ordering::SeqCst), 1);
    assert_eq!((outside.asked().len(), inside.asked().len()), (1, 0));
    assert_refused(&get(&client, &url).await, INSIDE);
    assert_eq!(changing.asked.load(Ordering::SeqCst), 2);
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
async fn an_address_in_figures_is_refused_in_every_spelling() {
    let host = Host::start(Says::head("200 OK", ""));
    let client = guarded(names(&[&[OUTSIDE]]), 0);
    for spelling in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
    ] {
        let url = format!("http://{spelling}:{}/", host.address.port());
        assert_refused(&get(&client, &url).await, INSIDE);
    }
    for spelling in [
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "fd00:ec2::254",
        "fe80::1",
    ] {
        let url = format!("http://[{spelling}]:{}/", host.address.port());
        assert_refused(&get(&client, &url).await, spelling.parse().unwrap());
    }
    assert_eq!(host.asked().len(), 0);
}

#[tokio::test]
async fn a_redirect_to_loopback_is_refused_in_figures_and_by_name() {
    let inside = Host::start(Says::head("200 OK", ""));
    for host in ["127.0.0.1", "inner.example"] {
        let to = format!("http://{host}:{}/", inside.address.port());
        let outside = Host::at(2, Says::moved(&to));
        let client = guarded(names(&[&[INSIDE]]), 3);
        assert_refused(&get(&client, &outside.url()).await, INSIDE);
        assert_eq!((outside.asked().len(), inside.asked().len()), (1, 0), "{host}");
    }
}

#[tokio::test]
async fn redirects_end_after_as_many_as_are_followed() {
    let host = Host::at(2, Says::moved("/again"));
    let client = guarded(names(&[&[OUTSIDE]]), 3);
    let error = get(&client, &host.url()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::Broken);
    assert_eq!(host.asked().len(), 4);
}

#[tokio::test]
async fn no_library_gets_a_client_that_refuses_addresses() {
    assert!(guarded(names(&[&[OUTSIDE]]), 0).shared().is_none());
    assert!(Client::new(Settings::default()).unwrap().shared().is_some());
}
