//! The real server in a process of its own: started on a folder and a port, killed, ended,
//! started again on the same. Its child dies with it, by its own process id.

mod binary;
mod port;
mod settings;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::api::ApiClient;
use crate::history::FaultKind;
use crate::journal::Journal;
use crate::pack::TestPack;
use crate::script::ModelScript;

pub use binary::path as binary;
pub use port::free as free_port;
pub use settings::ServerSettings;

/// How long a server may take to come up.
const READY_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// What a server is started with.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// What the model says; without a pack the script for trying if none.
    pub script: Option<ModelScript>,
    pub pack: ServerPack,
    /// Its configuration file, but for the address.
    pub settings: ServerSettings,
    /// The data folder; a fresh one that goes with the server if none.
    pub home: Option<PathBuf>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// Run it under `strace` with these arguments.
    pub strace: Option<Vec<String>>,
}

/// What a server runs.
#[derive(Clone, Debug, Default)]
pub enum ServerPack {
    /// One agent with the tools for trying.
    #[default]
    Alone,
    /// The pack that is built in.
    Demo,
    Pack(TestPack),
}

impl ServerOptions {
    /// A server that runs `pack`.
    pub fn pack(pack: TestPack) -> Self {
        Self {
            pack: ServerPack::Pack(pack),
            ..Self::default()
        }
    }

    /// A server that runs the pack that is built in.
    pub fn demo() -> Self {
        Self {
            pack: ServerPack::Demo,
            ..Self::default()
        }
    }

    /// A server whose model plays `script`.
    pub fn script(script: ModelScript) -> Self {
        Self {
            script: Some(script),
            ..Self::default()
        }
    }

    /// The same with one setting more.
    #[must_use]
    pub fn set(mut self, section: &'static str, key: &'static str, value: impl ToString) -> Self {
        self.settings = self.settings.set(section, key, value);
        self
    }
}

/// The server did not come up: how it ended, if it did, and what it said.
#[derive(Debug, thiserror::Error)]
#[error("the server did not come up ({status:?}):\n{stderr}")]
pub struct StartError {
    /// How it ended; none if it was still running.
    pub status: Option<ExitStatus>,
    /// What it wrote to its standard error.
    pub stderr: String,
}

/// A server.
#[derive(Debug)]
pub struct TestServer {
    options: ServerOptions,
    /// The configuration, script and output of the server; its data too unless told otherwise.
    folder: TempDir,
    addr: SocketAddr,
    child: Option<Child>,
    journal: Journal,
}

impl TestServer {
    /// Starts a server with a journal of its own, which must come up.
    pub async fn start(options: ServerOptions) -> Self {
        Self::try_start(options, Journal::new())
            .await
            .unwrap_or_else(|why| panic!("{why}"))
    }

    /// Starts a server and waits until it is ready.
    pub async fn try_start(options: ServerOptions, journal: Journal) -> Result<Self, StartError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Self {
            options,
            folder,
            addr: port::free(),
            child: None,
            journal,
        };
        server.run().await?;
        Ok(server)
    }

    /// Starts the process again, on the same data and the same port.
    pub async fn run(&mut self) -> Result<(), StartError> {
        assert!(self.child.is_none(), "the server still runs");
        let child = self.command().and_then(|mut command| command.spawn());
        self.child = Some(child.expect("the server's process starts"));
        let begun = Instant::now();
        let probe = ApiClient::new(self.addr, Journal::new());
        loop {
            let status = self.child.as_mut().map(Child::try_wait);
            if let Some(Ok(Some(status))) = status {
                self.child = None;
                return Err(self.failed(Some(status)));
            }
            if probe
                .get("/readyz")
                .await
                .is_ok_and(|answer| answer.status == 200)
            {
                return Ok(());
            }
            if begun.elapsed() > READY_WITHIN {
                return Err(self.failed(None));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn failed(&self, status: Option<ExitStatus>) -> StartError {
        StartError {
            status,
            stderr: self.stderr(),
        }
    }

    fn command(&self) -> io::Result<Command> {
        let folder = self.folder.path();
        let config = folder.join("turnwire.test.yaml");
        let settings = self.options.settings.clone();
        std::fs::write(&config, settings.set("listen", "address", self.addr).yaml())?;
        let mut command = match &self.options.strace {
            None => Command::new(binary::path()),
            Some(arguments) => {
                let mut strace = Command::new("strace");
                strace.args(arguments).arg("--").arg(binary::path());
                strace
            }
        };
        command.arg("serve").arg("--config").arg(&config);
        let path = folder.join("script.yaml");
        match (&self.options.script, &self.options.pack) {
            (Some(script), _) => {
                script.write(&path)?;
                command.arg("--script").arg(path);
            }
            (None, ServerPack::Alone) => {
                std::fs::write(&path, ModelScript::builtin())?;
                command.arg("--script").arg(path);
            }
            (None, ServerPack::Demo | ServerPack::Pack(_)) => {}
        }
        if let ServerPack::Pack(pack) = &self.options.pack {
            pack.write(&self.pack_dir())?;
            command.arg("--pack").arg(self.pack_dir());
        }
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(self.stderr_path())?;
        command
            .env("TURNWIRE_HOME", self.home())
            .envs(self.options.env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(stderr.try_clone()?)
            .stderr(stderr);
        Ok(command)
    }

    /// The server's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A client of it.
    pub fn api(&self) -> ApiClient {
        ApiClient::new(self.addr, self.journal.clone())
    }

    /// The journal of everything done to it.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Its data folder.
    pub fn home(&self) -> PathBuf {
        let own = || self.folder.path().join("home");
        self.options.home.clone().unwrap_or_else(own)
    }

    /// The folder of its pack.
    pub fn pack_dir(&self) -> PathBuf {
        self.folder.path().join("pack")
    }

    /// Changes its pack, as an editor would; the server sees it when it looks.
    pub fn repack(&mut self, pack: TestPack) {
        pack.write(&self.pack_dir()).expect("a pack is written");
        self.options.pack = ServerPack::Pack(pack);
    }

    /// The folder of its configuration and output.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn stderr_path(&self) -> PathBuf {
        self.folder.path().join("stderr.txt")
    }

    /// All it has written to its standard output and error, over all its lives.
    pub fn stderr(&self) -> String {
        let bytes = std::fs::read(self.stderr_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The process id of the server itself, also under `strace`.
    pub fn pid(&self) -> u32 {
        let child = self.child.as_ref().expect("the server runs").id();
        if self.options.strace.is_none() {
            return child;
        }
        let list = std::fs::read_to_string(format!("/proc/{child}/task/{child}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
            .unwrap_or(child)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        // It may just have ended by itself; then there is nothing to tell.
        let _ = kill_process(pid.expect("a process has an id"), signal);
    }

    /// Kills it on the spot and waits until it is gone.
    pub async fn kill9(&mut self) {
        self.journal.fault(FaultKind::Kill);
        self.signal(Signal::KILL);
        self.wait(Duration::from_secs(10)).await;
    }

    /// Asks it to end; `wait` for it.
    pub fn sigterm(&self) {
        self.journal.fault(FaultKind::Term);
        self.signal(Signal::TERM);
    }

    /// Waits until it has ended and says how.
    pub async fn wait(&mut self, within: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            let child = self.child.as_mut().expect("the server runs");
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                self.child = None;
                return status;
            }
            assert!(
                begun.elapsed() < within,
                "the server does not end within {within:?}:\n{}",
                self.stderr()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills it and starts it again.
    pub async fn restart(&mut self) {
        self.kill9().await;
        self.run().await.unwrap_or_else(|why| panic!("{why}"));
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.signal(Signal::KILL);
        }
        if let Some(mut child) = self.child.take() {
            if self.options.strace.is_some() {
                // It ends by itself when what it traces does.
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_secs(2)
                    && matches!(child.try_wait(), Ok(None))
                {
                    std::thread::sleep(POLL);
                }
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let said = self.stderr();
            let tail = said.len().saturating_sub(4_000);
            let tail = said.get(tail..).unwrap_or(&said);
            println!("the server on {} said:\n{tail}", self.addr);
        }
    }
}
