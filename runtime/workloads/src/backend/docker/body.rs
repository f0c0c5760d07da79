//! Conversion of a start to the engine's request for a container (rule W17).

use std::collections::{HashMap, HashSet};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, PortBinding, ResourcesUlimits,
    RestartPolicy, RestartPolicyNameEnum,
};

use super::label::Labels;
use crate::backend::{Container, Start};

/// Host address of port mappings, so that only programs on this machine reach them.
const LOOPBACK: &str = "127.0.0.1";

/// Returns the request that creates the container of a start.
pub(super) fn body(
    folder: &str,
    labels: &Labels,
    start: &Start,
    container: &Container,
) -> ContainerCreateBody {
    let list = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec());
    let ports: HashSet<String> = container.ports.iter().map(|(inside, _)| port(*inside)).collect();
    ContainerCreateBody {
        image: Some(container.image.clone()),
        entrypoint: list(&container.entrypoint),
        cmd: list(&container.command),
        working_dir: container.cwd.clone(),
        env: Some(
            start
                .environment
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        ),
        labels: Some(labels.write(folder)),
        exposed_ports: Some(ports.into_iter().collect()),
        open_stdin: Some(false),
        tty: Some(false),
        host_config: Some(host(start, container)),
        ..ContainerCreateBody::default()
    }
}

fn host(start: &Start, container: &Container) -> HostConfig {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut bindings: HashMap<String, Option<Vec<PortBinding>>> = HashMap::new();
    for (inside, outside) in &container.ports {
        let binding = PortBinding {
            host_ip: Some(LOOPBACK.to_owned()),
            host_port: Some(outside.to_string()),
        };
        bindings
            .entry(port(*inside))
            .or_default()
            .get_or_insert_default()
            .push(binding);
    }
    HostConfig {
        network_mode: Some(container.network.clone()),
        port_bindings: Some(bindings),
        mounts: Some(
            container
                .mounts
                .iter()
                .map(|mount| Mount {
                    typ: Some(MountType::BIND),
                    source: Some(mount.from.to_string_lossy().into_owned()),
                    target: Some(mount.to.clone()),
                    read_only: Some(mount.read_only),
                    ..Mount::default()
                })
                .collect(),
        ),
        memory: start.limits.memory.map(signed),
        // Without swap beside it, as the limit of a local process.
        memory_swap: start.limits.memory.map(signed),
        ulimits: start.limits.open_files.map(|files| {
            vec![ResourcesUlimits {
                name: Some("nofile".to_owned()),
                soft: Some(signed(files)),
                hard: Some(signed(files)),
            }]
        }),
        log_config: start.output.as_ref().map(|output| HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), output.max_size.max(1).to_string()),
                // The present file is one of them.
                ("max-file".to_owned(), output.keep.saturating_add(1).to_string()),
            ])),
        }),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        // Only reconcilers start something again (W3).
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        auto_remove: Some(false),
        ..HostConfig::default()
    }
}

fn port(number: u16) -> String {
    format!("{number}/tcp")
}

/// Returns the reference to pull, with a tag, since a bare name would pull all tags.
pub(super) fn reference(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    match image.contains('@') || last.contains(':') {
        true => image.to_owned(),
        false => format!("{image}:latest"),
    }
}

#[cfg(test)]
mod tests {
    use watershed_core::Timestamp;

    use super::*;
    use crate::backend::{Limits, Mount as Shown, Output, Program, Pull, StartId};

    #[test]
    fn one_image_is_pulled_and_not_all_tags() {
        for (image, expected) in [
            ("api", "api:latest"),
            ("api:2", "api:2"),
            ("registry:5000/team/api", "registry:5000/team/api:latest"),
            ("registry:5000/team/api:2", "registry:5000/team/api:2"),
            ("api@sha256:00", "api@sha256:00"),
        ] {
            assert_eq!(reference(image), expected);
        }
    }

    /// Covers W17: the listed settings, and the mapping of ports.
    #[test]
    fn a_container_has_what_is_listed_and_its_ports_are_those_of_the_loopback_interface() {
        let container = Container {
            image: "api:2".into(),
            pull: Pull::Missing,
            entrypoint: Vec::new(),
            command: vec!["serve".into()],
            cwd: Some("/app".into()),
            network: "bridge".into(),
            mounts: vec![Shown {
                from: "/srv/project/data".into(),
                to: "/data".into(),
                read_only: true,
            }],
            ports: vec![(80, 40_113), (80, 40_114), (81, 40_115)],
        };
        let start = Start {
            id: StartId::new("a", 1).unwrap(),
            program: Program::Container(container.clone()),
            environment: vec![("A".into(), "b=c".into())],
            limits: Limits {
                memory: Some(64 << 20),
                open_files: Some(100),
            },
            output: Some(Output {
                path: "/unused".into(),
                max_size: 1_000,
                keep: 2,
            }),
        };
        let labels = Labels {
            start: start.id.clone(),
            epoch: 1,
            ordered: Timestamp(1),
        };
        let made = body("/state", &labels, &start, &container);
        assert_eq!(made.env, Some(vec!["A=b=c".to_owned()]));
        assert_eq!(made.entrypoint, None, "that of the image");
        let host = made.host_config.unwrap();
        let bindings = host.port_bindings.unwrap();
        let of_80 = bindings["80/tcp"].as_ref().unwrap();
        assert!(
            of_80
                .iter()
                .all(|one| one.host_ip.as_deref() == Some("127.0.0.1"))
        );
        assert_eq!((bindings.len(), of_80.len()), (2, 2));
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
        let log = host.log_config.unwrap().config.unwrap();
        assert_eq!(
            (log["max-size"].as_str(), log["max-file"].as_str()),
            ("1000", "3")
        );
        assert_eq!(host.mounts.unwrap()[0].read_only, Some(true));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
    }
}
