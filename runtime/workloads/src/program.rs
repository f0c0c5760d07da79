//! Programs: the part of a spec whose changes create a release (rule W1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_controller::message::to_json;
use watershed_core::Error;
use watershed_proto as proto;

use crate::addresses::Addresses;
use crate::backend::{Container, Mount, Program as Started, Pull};
use crate::project::Project;
use crate::render::Render;

/// The declaration of a program with its environment; values may be templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Program and arguments; empty if `run` is used.
    pub command: Vec<String>,
    /// Shell script for `sh -c`, instead of `command`.
    pub run: String,
    /// Working directory below the project's root.
    pub cwd: String,
    /// Environment variables, by name.
    pub environment: BTreeMap<String, String>,
    /// Container settings; none for a local process.
    pub docker: Option<Docker>,
    /// Ports on which the program listens.
    pub ports: Vec<Port>,
    /// Memory limit in bytes; 0 for no limit.
    pub memory: u64,
    /// The most open files; 0 for no limit.
    pub open_files: u32,
    /// Variables that the templates read, with values as stored in the catalog.
    pub variables: BTreeMap<String, String>,
}

/// The container settings of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Docker {
    /// Name of the image, with its tag or digest.
    pub image: String,
    /// Policy for pulling the image: `missing`, `always` or `never`.
    pub pull: String,
    /// Name of the container's network.
    pub network: String,
    /// Mounted folders of the project: path below the root, path in the container, and true if read-only.
    pub mounts: Vec<(String, String, bool)>,
}

/// A port of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Name of the port, and of the environment variable with its number.
    pub name: String,
    /// Fixed port number; 0 for any free one.
    pub fixed: u16,
    /// Port number inside the container.
    pub container: u16,
}

/// Port numbers by the name of the port.
pub type Ports = BTreeMap<String, u16>;

impl Program {
    /// Reads a program from a spec, with the variables of its templates.
    pub fn from_spec(program: &proto::Program, variables: &BTreeMap<String, String>) -> Self {
        let port = |port: &proto::Port| Port {
            name: port.name.clone(),
            fixed: u16::try_from(port.fixed).unwrap_or_default(),
            container: u16::try_from(port.container).unwrap_or_default(),
        };
        let docker = program.docker.as_ref().map(|docker| Docker {
            image: docker.image.clone(),
            pull: docker.pull.clone(),
            network: docker.network.clone(),
            mounts: docker
                .mounts
                .iter()
                .map(|mount| (mount.from.clone(), mount.to.clone(), mount.read_only))
                .collect(),
        });
        Self {
            command: program.command.clone(),
            run: program.run.clone(),
            cwd: program.cwd.clone(),
            environment: program.environment.clone().into_iter().collect(),
            docker,
            ports: program.ports.iter().map(port).collect(),
            memory: program.memory_bytes,
            open_files: program.open_files,
            variables: variables.clone(),
        }
    }

    /// Returns a digest of the whole program. Programs with equal digests are the same release.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 release of a program");
        // Texts and numbers have an encoding always.
        hasher.update(&to_json(self).unwrap_or_default());
        hasher.finalize().to_hex().as_str()[..32].to_owned()
    }

    /// Returns true if a port is fixed, so that two replicas can't run at once.
    pub fn has_fixed_port(&self) -> bool {
        self.ports.iter().any(|port| port.fixed > 0)
    }

    /// Returns the command line, working directory and whole environment of one start.
    ///
    /// # Errors
    /// When a template can't be executed, or the folder leads out of the project.
    pub(crate) fn start(
        &self,
        project: &Project,
        render: &dyn Render,
        ports: &Ports,
        addresses: &Addresses,
    ) -> Result<(Started, Vec<(String, String)>), Error> {
        let fill = |text: &String| render.render(text, &self.variables);
        let network = match &self.docker {
            Some(docker) => render.render(&docker.network, &self.variables)?,
            None => String::new(),
        };
        // A container has the paths and the language of its image.
        let mut environment: BTreeMap<String, String> = match self.docker {
            Some(_) => BTreeMap::new(),
            None => project.environment(),
        };
        environment.extend(addresses.variables.clone());
        if self.docker.is_none() {
            let files = addresses.files.iter();
            environment.extend(files.map(|(name, path)| (name.clone(), path.display().to_string())));
        }
        let inside = self.ports_inside(ports, &network);
        environment.extend(inside.iter().map(|(name, port)| (name.clone(), port.to_string())));
        for (name, text) in &self.environment {
            environment.insert(name.clone(), expand(&fill(text)?, &environment));
        }
        let shell = ["/bin/sh".to_owned(), "-c".to_owned()];
        let (entrypoint, command): (Vec<String>, Vec<String>) = if self.run.is_empty() {
            let filled: Result<Vec<String>, Error> = self.command.iter().map(fill).collect();
            let command = filled?.iter().map(|text| expand(text, &environment)).collect();
            (Vec::new(), command)
        } else {
            // The shell expands variables by itself.
            (shell.to_vec(), vec![fill(&self.run)?])
        };
        let started = match &self.docker {
            None => Started::Local {
                command: [entrypoint, command].concat(),
                cwd: project.below(&self.cwd)?,
            },
            Some(docker) => {
                let joined = |(name, outside): (&String, &u16)| Some((*inside.get(name)?, *outside));
                Started::Container(Container {
                    entrypoint,
                    command,
                    // In the network of the host nothing leads anywhere: the ports are those of the program.
                    ports: match network.as_str() {
                        "host" | "none" => Vec::new(),
                        _ => ports.iter().filter_map(joined).collect(),
                    },
                    network,
                    ..self.container(docker, project, render)?
                })
            }
        };
        Ok((started, environment.into_iter().collect()))
    }

    /// Returns the port numbers that the program sees: inside the container if the network is its own.
    fn ports_inside(&self, ports: &Ports, network: &str) -> Ports {
        let inside = |port: &Port| {
            let outside = *ports.get(&port.name)?;
            let is_mapped = self.docker.is_some() && network != "host" && port.container > 0;
            Some((
                port.name.clone(),
                if is_mapped { port.container } else { outside },
            ))
        };
        self.ports.iter().filter_map(inside).collect()
    }

    /// Returns the request for a container, without command and ports.
    fn container(&self, docker: &Docker, project: &Project, render: &dyn Render) -> Result<Container, Error> {
        let fill = |text: &String| render.render(text, &self.variables);
        let mount = |(from, to, read_only): &(String, String, bool)| {
            Ok(Mount {
                from: project.below(&fill(from)?)?,
                to: fill(to)?,
                read_only: *read_only,
            })
        };
        Ok(Container {
            image: fill(&docker.image)?,
            pull: match docker.pull.as_str() {
                "always" => Pull::Always,
                "never" => Pull::Never,
                _ => Pull::Missing,
            },
            entrypoint: Vec::new(),
            command: Vec::new(),
            cwd: (!self.cwd.is_empty()).then(|| self.cwd.clone()),
            network: String::new(),
            mounts: docker.mounts.iter().map(mount).collect::<Result<_, Error>>()?,
            ports: Vec::new(),
        })
    }
}

/// Replaces `${NAME}` in a text by environment variables. An unset name, or a text that is no name, stays as written,
/// since programs have dollar signs of their own.
fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let value = after
            .split_once('}')
            .and_then(|(name, after)| Some((environment.get(name)?, after)));
        rest = match value {
            Some((value, after)) => {
                out.push_str(value);
                after
            }
            None => {
                out.push_str("${");
                after
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_other_dollar_signs_stay() {
        let environment = BTreeMap::from([("PORT".to_owned(), "40113".to_owned())]);
        for (text, expected) in [
            ("${PORT}", "40113"),
            ("a${PORT}b${PORT}", "a40113b40113"),
            ("${OTHER} ${PORT}", "${OTHER} 40113"),
            ("${PORT", "${PORT"),
            ("$PORT ${} ${${PORT}", "$PORT ${} ${40113"),
        ] {
            assert_eq!(expand(text, &environment), expected);
        }
    }

    /// Covers W1: each part of a program is part of its digest.
    #[test]
    fn every_part_of_a_program_makes_another_release() {
        let base = Program {
            command: vec!["a".into(), "b".into()],
            ..Program::default()
        };
        let other = |change: fn(&mut Program)| {
            let mut program = base.clone();
            change(&mut program);
            program.digest()
        };
        let digests = [
            base.digest(),
            other(|program| program.command = vec!["a b".into()]),
            other(|program| program.run = "a".into()),
            other(|program| program.cwd = "app".into()),
            other(|program| drop(program.environment.insert("A".into(), "1".into()))),
            other(|program| drop(program.variables.insert("A".into(), "1".into()))),
            other(|program| program.docker = Some(Docker::default())),
            other(|program| program.ports = vec![Port::default()]),
            other(|program| program.memory = 1),
            other(|program| program.open_files = 1),
        ];
        let distinct: std::collections::BTreeSet<&String> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(base.digest(), base.clone().digest());
    }
}
