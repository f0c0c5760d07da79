//! Programs: the part of a spec whose changes make a release (rule W1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_controller::message::to_json;
use watershed_core::Error;
use watershed_proto as proto;

use crate::addresses::Addresses;
use crate::backend::{Container, Mount, Program as Started, Pull};
use crate::project::Project;
use crate::render::Render;

/// A program with its surroundings, as it was declared: values may be templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// A text for `sh -c`, instead of `command`.
    pub run: String,
    /// The folder below the project's root.
    pub cwd: String,
    /// Variables of the program.
    pub environment: BTreeMap<String, String>,
    /// The container, instead of a local process.
    pub docker: Option<Docker>,
    /// Ports that it listens on.
    pub ports: Vec<Port>,
    /// Bytes of memory; 0 for no limit.
    pub memory: u64,
    /// Open files; 0 for no limit.
    pub open_files: u32,
    /// Values of the variables that its templates read, as the catalog stores them.
    pub variables: BTreeMap<String, String>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Docker {
    /// The image.
    pub image: String,
    /// The circumstances in which it is pulled: `missing`, `always` or `never`.
    pub pull: String,
    /// The network.
    pub network: String,
    /// Folders of the project that it sees: below the root, in the container, and true if read only.
    pub mounts: Vec<(String, String, bool)>,
}

/// A port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The variable under which the program finds the number.
    pub name: String,
    /// The number; 0 for a free one.
    pub fixed: u16,
    /// The number inside the container.
    pub container: u16,
}

/// The numbers of ports by their names.
pub type Ports = BTreeMap<String, u16>;

impl Program {
    /// Reads the program of a spec, with the variables of its templates.
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

    /// Returns a digest of all of it. Programs with equal digests are one release.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 release of a program");
        // Texts and numbers have an encoding always.
        hasher.update(&to_json(self).unwrap_or_default());
        hasher.finalize().to_hex().as_str()[..32].to_owned()
    }

    /// Returns true if two copies of it can't run beside each other.
    pub fn has_fixed_port(&self) -> bool {
        self.ports.iter().any(|port| port.fixed > 0)
    }

    /// Returns the command line, the folder and the whole environment for one start.
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

    /// Returns the numbers that the program listens on: those inside the container, where it has a network of its own.
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

    /// Returns a container without its command and its ports.
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

/// Puts the values of variables in the place of `${NAME}`. A name that nobody has set stays as it is, and so does a text
/// that is no name: programs have dollar signs of their own.
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

    /// W1.
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
