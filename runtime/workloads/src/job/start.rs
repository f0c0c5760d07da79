//! The start of a job's process: its counter is stored before the order.

use watershed_controller::Error;
use watershed_core::Attempts;

use super::pass::Pass;
use super::record::JobStage;
use crate::backend::{self, Limits, Observation, Output, Phase, Start};
use crate::crash::{self, crash_point};
use crate::policy::exit::StartFailure;
use crate::policy::run_key::{RunKey, Trigger};
use crate::program::Ports;
use crate::replica::backend_error;
use crate::service::{self, Addresses};
use crate::settings::Logs;

impl Pass<'_> {
    /// Stores the counter of a new start, then orders the start.
    pub(super) async fn begin(&mut self, key: RunKey, trigger: Trigger) -> Result<(), Error> {
        if self.record.run.is_none_or(|(run, _)| run != key) {
            (self.record.exits, self.record.starts) = (Attempts::default(), Attempts::default());
        }
        if let Trigger::Refresh(asked) = trigger {
            self.record.refreshes = asked;
        }
        let nothing = Ports::new();
        let ports = self
            .shared
            .ports
            .take(&self.program.ports, &self.record.ports, &nothing);
        self.record.counter += 1;
        self.record.is_open = true;
        self.record.run = Some((key, trigger));
        self.record.started = self.context.now();
        self.record.backend_id = None;
        self.record.stop = None;
        self.record.ports = ports.clone().unwrap_or_default();
        self.enter(JobStage::Running, "start", "");
        self.store().await?;
        match ports {
            // The wait that follows orders what is not there.
            Ok(_) => Ok(()),
            Err(error) => self.refuse(StartFailure::PortBusy, error.to_string()),
        }
    }

    /// Orders the start in the record; harmless if ordered before.
    pub(super) async fn order(&mut self) -> Result<(), Error> {
        let spec = &self.context.spec().0;
        let render = self.shared.render.as_ref();
        let project = &self.shared.project;
        let services = service::services(self.context.refs());
        let addresses = Addresses::now(&self.context.controller(), &project.output, &services);
        let (program, environment) = match self
            .program
            .start(project, render, &self.record.ports, &addresses)
        {
            Ok(started) => started,
            Err(error) if &*error.code == "bad-folder" => {
                return self.refuse(StartFailure::BadFolder, error.message.to_string());
            }
            Err(error) => return self.refuse(StartFailure::BadCommand, error.message.to_string()),
        };
        let logs = Logs::from(spec.logs.as_ref());
        let start = Start {
            id: self.start_id()?,
            program,
            environment,
            limits: Limits {
                memory: (self.program.memory > 0).then_some(self.program.memory),
                open_files: (self.program.open_files > 0).then(|| self.program.open_files.into()),
            },
            output: Some(Output {
                path: project.output(&self.start_id()?),
                max_size: logs.max_size,
                keep: logs.keep,
            }),
        };
        crash_point(crash::START_BEFORE);
        let started = self.backend.start(start).await;
        crash_point(crash::START_AFTER);
        match started {
            Ok(observation) => self.shared.observations.note(observation),
            Err(backend::Error::Occupied { living }) => {
                self.stop_other(living.clone()).await?;
                return Err(backend_error(&backend::Error::Occupied { living }));
            }
            Err(error) if error.is_transient() => {
                // Whether there is a process is seen later.
                self.not_started(StartFailure::EngineUnreachable, error.to_string());
                self.record.is_open = self.record.stage != JobStage::Failed;
                self.store().await?;
            }
            Err(error) => return Err(backend_error(&error)),
        }
        Ok(())
    }

    fn refuse(&self, failure: StartFailure, message: String) -> Result<(), Error> {
        self.shared.observations.note(Observation {
            id: self.start_id()?,
            epoch: self.backend.epoch(),
            backend_id: None,
            started: self.context.now(),
            stopping: false,
            phase: Phase::NotStarted { failure, message },
        });
        Ok(())
    }
}
