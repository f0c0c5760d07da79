//! Users and databases: tokens of the service, and its instances.

use std::net::IpAddr;
use std::sync::Arc;

use watershed_api::Problem;
use watershed_callers::Verifier;
use watershed_pgwire::{Backend, Session};

use super::catalogs::Catalogs;
use super::reader::Reader;
use crate::http::Service;

/// The tokens and instances of a service, as users and databases.
pub(super) struct Users {
    service: Service,
    catalogs: Arc<Catalogs>,
}

impl Users {
    /// Returns the users of a service.
    pub(super) fn of(service: Service) -> Self {
        Self {
            service,
            catalogs: Arc::default(),
        }
    }
}

impl Backend for Users {
    fn verifier(&self, user: &str) -> Option<Verifier> {
        self.service.verifier(user)
    }

    fn failed(&self, address: Option<IpAddr>) -> Result<(), Problem> {
        self.service.failed_to_sign_in(address)
    }

    fn open(&self, user: &str, proved: &Verifier, database: &str) -> Result<Box<dyn Session>, Problem> {
        let entered = self.service.enter(user, proved, database)?;
        Ok(Box::new(Reader::new(entered, Arc::clone(&self.catalogs))))
    }
}
