//! Tests of replicas' ports, and of the addresses that other programs get (rule W17).

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use watershed_controller::{Key, Ref, Resource};
use watershed_proto::{Operator, Port, ServiceSpec};

use super::stand::{Stand, service};
use crate::Service;
use crate::backend::StartId;
use crate::backend::simulated::Faults;
use crate::replica::ReplicaRecord;

/// Returns a stand with a ready service `api` with a port, and one that refers to it.
async fn stand() -> Stand {
    let stand = Stand::new(1, Faults::NONE).await;
    stand.service("api", &with_port()).await;
    stand.pass(1).await;
    let user = Resource::declare("service", "user", &Service(service(1))).unwrap();
    let user = user.with_refs([Ref::completed("service", "api")]);
    stand.controller.create(user).await.unwrap();
    stand.pass(1).await;
    stand
}

fn with_port() -> ServiceSpec {
    let mut spec = service(1);
    spec.program.as_mut().unwrap().ports = vec![Port {
        name: "PORT".into(),
        ..Port::default()
    }];
    spec
}

/// Returns the only replica of a service, with its start id.
fn replica(stand: &Stand, service: &str) -> (StartId, ReplicaRecord) {
    let owner = stand.controller.get(Key::new("service", service)).unwrap().uid();
    let all = stand
        .controller
        .list(watershed_controller::Select::all())
        .resources;
    let found = all.iter().find(|one| one.row.owner == Some(owner)).unwrap();
    let record: ReplicaRecord = found.state().unwrap().unwrap();
    (
        StartId::new(&found.uid().to_string(), record.counter).unwrap(),
        record,
    )
}

/// Returns the addresses of `api` that the process of `user` got at its start, and the current ones in its file.
fn told(stand: &Stand) -> (String, String) {
    let (_, record) = replica(stand, "user");
    let file = std::fs::read_to_string(&record.addresses.files["API_PORT_FILE"]).unwrap();
    (
        record.addresses.variables["API_PORT"].clone(),
        file.trim_end().to_owned(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_copy_keeps_its_port_when_it_starts_again() {
    let stand = stand().await;
    let (start, first) = replica(&stand, "api");
    let address = format!("127.0.0.1:{}", first.ports["PORT"]);
    assert_eq!(told(&stand), (address.clone(), address.clone()));
    stand.machine.kill(&start);
    stand.pass(20).await;
    let (_, second) = replica(&stand, "api");
    assert_eq!((second.counter, &second.ports), (2, &first.ports));
    assert_eq!(told(&stand), (address.clone(), address));
    // One that ends before it serves on its port tries another.
    let (start, _) = replica(&stand, "api");
    stand.machine.kill(&start);
    while replica(&stand, "api").1.backend_id.is_none() || replica(&stand, "api").1.counter < 3 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (start, third) = replica(&stand, "api");
    assert!(third.keeps_ports && !third.was_ready);
    stand.machine.kill(&start);
    stand.pass(60).await;
    let (_, fourth) = replica(&stand, "api");
    assert!(fourth.counter == 4 && !fourth.keeps_ports);
    assert_eq!(stand.workloads.kept()[1], 1, "it holds one port");
}

#[tokio::test(start_paused = true)]
async fn each_start_gets_the_addresses_of_its_moment_and_a_process_finds_new_ones_in_a_file() {
    let stand = stand().await;
    let (start, first) = replica(&stand, "api");
    let old = format!("127.0.0.1:{}", first.ports["PORT"]);
    // Somebody else takes the port meanwhile.
    stand.machine.kill(&start);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first.ports["PORT"])).unwrap();
    stand.pass(1).await;
    assert_eq!(told(&stand), (old.clone(), String::new()), "nothing is ready");
    stand.pass(20).await;
    let (_, second) = replica(&stand, "api");
    let new = format!("127.0.0.1:{}", second.ports["PORT"]);
    assert_ne!(new, old);
    assert_eq!(told(&stand), (old, new.clone()));
    assert_eq!(
        replica(&stand, "user").1.counter,
        1,
        "that is no reason to restart it"
    );
    let mut restarted = service(1);
    restarted.operator = Some(Operator {
        restarts: 1,
        is_now: true,
        ..Operator::default()
    });
    let user = stand.controller.get(Key::new("service", "user")).unwrap().uid();
    let edited = stand.controller.update_spec(user, &Service(restarted));
    edited.await.unwrap();
    stand.pass(5).await;
    assert_eq!(replica(&stand, "user").1.counter, 2);
    assert_eq!(told(&stand), (new.clone(), new));
    drop(listener);
    let file = replica(&stand, "user").1.addresses.files["API_PORT_FILE"].clone();
    stand.controller.delete(Key::new("service", "api")).await.unwrap();
    stand.pass(60).await;
    assert!(!file.exists());
}
