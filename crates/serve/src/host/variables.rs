//! What a pack may name by `${NAME}`: the environment of the server, and the demo data service,
//! which is started when a pack first names it and nothing else stands for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::demo;

/// The variable that packs name the demo data service by.
pub const DEMO_CCS: &str = "DEMO_CCS";

/// Names and what they stand for, keys among it.
#[derive(Clone, Default)]
pub struct Variables {
    said: BTreeMap<String, String>,
    demo: Option<Arc<Demo>>,
}

/// The demo data service, running or not yet.
#[derive(Debug)]
struct Demo {
    runtime: Handle,
    /// Where it is; none if it could not be started.
    url: OnceLock<Option<String>>,
}

impl fmt::Debug for Variables {
    /// The names alone: what they stand for may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables")
            .field("said", &self.said.keys())
            .field("demo", &self.demo)
            .finish()
    }
}

impl Variables {
    /// The environment of this process.
    pub fn from_env() -> Self {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self {
            said: all.filter(|(_, value)| !value.is_empty()).collect(),
            demo: None,
        }
    }

    /// With `name` standing for `value`, unless it stands for something already.
    #[must_use]
    pub fn or(mut self, name: &str, value: impl Into<String>) -> Self {
        let said = self.said.entry(name.to_owned());
        said.or_insert_with(|| value.into());
        self
    }

    /// With the demo data service, run by `runtime` once it is asked for.
    #[must_use]
    pub fn with_demo(mut self, runtime: Handle) -> Self {
        self.demo = Some(Arc::new(Demo {
            runtime,
            url: OnceLock::new(),
        }));
        self
    }

    /// What `name` stands for.
    pub fn get(&self, name: &str) -> Option<String> {
        if let Some(value) = self.said.get(name) {
            return Some(value.clone());
        }
        let demo = self.demo.as_ref().filter(|_| name == DEMO_CCS)?;
        demo.url.get_or_init(|| demo.start()).clone()
    }
}

impl Demo {
    fn start(&self) -> Option<String> {
        match self.listen() {
            Ok(url) => {
                tracing::info!(%url, "the demo data service is up; POST {url}/stop ends it");
                Some(url)
            }
            Err(error) => {
                tracing::error!(%error, "the demo data service could not be started");
                None
            }
        }
    }

    fn listen(&self) -> std::io::Result<String> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let _inside = self.runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        self.runtime
            .spawn(demo::serve(listener, std::future::pending()));
        Ok(url)
    }
}
