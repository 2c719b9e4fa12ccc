//! The values that a pack may name by `${NAME}`: the environment of the server, and the addresses of
//! services that the binary brings along and starts on first use.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;

/// A service that is part of the binary, started when a pack first names its variable.
#[derive(Clone, Copy, Debug)]
pub struct BundledService {
    /// The variable that stands for the URL of the service.
    pub variable: &'static str,
    /// Starts the service on a runtime and returns its URL.
    pub start: fn(&Handle) -> io::Result<String>,
}

/// The variables that packs may name, API keys among them.
#[derive(Clone, Default)]
pub struct ServerVariables {
    values: BTreeMap<String, String>,
    services: Vec<Arc<LazyService>>,
}

/// A [`BundledService`] that may have been started.
#[derive(Debug)]
struct LazyService {
    service: BundledService,
    runtime: Handle,
    /// The URL; `None` if the start failed.
    url: OnceLock<Option<String>>,
}

impl fmt::Debug for ServerVariables {
    /// The names alone: a value may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables")
            .field("names", &self.values.keys())
            .field("services", &self.services)
            .finish()
    }
}

impl ServerVariables {
    /// The environment of this process.
    pub fn from_env() -> Self {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        let pairs = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self {
            values: pairs.filter(|(_, value)| !value.is_empty()).collect(),
            services: Vec::new(),
        }
    }

    /// Adds `name` with `value`, unless `name` has a value.
    #[must_use]
    pub fn or(mut self, name: &str, value: impl Into<String>) -> Self {
        let entry = self.values.entry(name.to_owned());
        entry.or_insert_with(|| value.into());
        self
    }

    /// Sets `name` to `value`, whatever it was.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// Adds `service`, which `runtime` runs once a pack names its variable.
    #[must_use]
    pub fn or_service(mut self, service: BundledService, runtime: Handle) -> Self {
        self.services.push(Arc::new(LazyService {
            service,
            runtime,
            url: OnceLock::new(),
        }));
        self
    }

    /// The variables of the environment, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.values.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of `name`. Starts a bundled service if `name` is its variable.
    pub fn get(&self, name: &str) -> Option<String> {
        if let Some(value) = self.values.get(name) {
            return Some(value.clone());
        }
        let mut services = self.services.iter();
        let lazy = services.find(|lazy| lazy.service.variable == name)?;
        lazy.url.get_or_init(|| lazy.start()).clone()
    }
}

impl LazyService {
    fn start(&self) -> Option<String> {
        let BundledService { variable, start } = self.service;
        start(&self.runtime)
            .inspect_err(|error| tracing::error!(%error, variable, "bundled service did not start"))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(_: &Handle) -> io::Result<String> {
        Err(io::ErrorKind::AddrInUse.into())
    }

    fn answer(_: &Handle) -> io::Result<String> {
        Ok("http://127.0.0.1:7".to_owned())
    }

    #[tokio::test]
    async fn bundled_service_stands_for_its_variable_alone() {
        let service = |start| BundledService {
            variable: "SERVICE",
            start,
        };
        let variables = ServerVariables::default().or_service(service(answer), Handle::current());
        assert_eq!(
            variables.get("SERVICE").as_deref(),
            Some("http://127.0.0.1:7")
        );
        assert_eq!(variables.get("OTHER"), None);
        let set = variables.or("SERVICE", "http://example.test");
        assert_eq!(set.get("SERVICE").as_deref(), Some("http://example.test"));
        let failing = ServerVariables::default().or_service(service(refuse), Handle::current());
        assert_eq!(failing.get("SERVICE"), None);
    }
}
