//! The real server as a child process: started with a data folder and a port, killed, drained and
//! restarted on both. Dropping [`TestServer`] kills the child by its process id.

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

/// Deadline for a server to become ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// The id of the user and the group `nobody`.
const NOBODY: u32 = 65_534;
const POLL: Duration = Duration::from_millis(5);

/// Configuration of a [`TestServer`].
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// The model's script; `None` without a pack is the built-in script.
    pub script: Option<ModelScript>,
    pub pack: ServerPack,
    /// The configuration file except the address.
    pub settings: ServerSettings,
    /// The data folder; `None` is a temporary folder that is removed with the server.
    pub home: Option<PathBuf>,
    pub env: Vec<(String, String)>,
    /// Arguments to run the server under `strace`.
    pub strace: Option<Vec<String>>,
    /// Runs the server as the user `nobody`, if the tests run as root.
    pub unprivileged: bool,
    /// The limit of open files of the server's process; not under `strace`.
    pub open_files_max: Option<u64>,
}

/// The pack that a [`TestServer`] runs.
#[derive(Clone, Debug, Default)]
pub enum ServerPack {
    /// No pack: one agent with the built-in test tools.
    #[default]
    Alone,
    /// The built-in demo pack.
    Demo,
    Pack(TestPack),
}

impl ServerOptions {
    /// Options for a server that runs `pack`.
    pub fn pack(pack: TestPack) -> Self {
        Self {
            pack: ServerPack::Pack(pack),
            ..Self::default()
        }
    }

    /// Options for a server that runs the built-in demo pack.
    pub fn demo() -> Self {
        Self {
            pack: ServerPack::Demo,
            ..Self::default()
        }
    }

    /// Options for a server whose model follows `script`.
    pub fn script(script: ModelScript) -> Self {
        Self {
            script: Some(script),
            ..Self::default()
        }
    }

    /// Adds a setting to the configuration file.
    #[must_use]
    pub fn set(mut self, section: &'static str, key: &'static str, value: impl ToString) -> Self {
        self.settings = self.settings.set(section, key, value);
        self
    }
}

/// The server did not become ready.
#[derive(Debug, thiserror::Error)]
#[error("the server did not become ready ({status:?}):\n{stderr}")]
pub struct StartError {
    /// The exit status; `None` if the process was still running.
    pub status: Option<ExitStatus>,
    /// Everything written to standard output and error.
    pub stderr: String,
}

/// A server process under test.
#[derive(Debug)]
pub struct TestServer {
    options: ServerOptions,
    /// Configuration, script, output and, by default, data of the server.
    folder: TempDir,
    addr: SocketAddr,
    child: Option<Child>,
    journal: Journal,
}

impl TestServer {
    /// Starts a server with a new journal; panics if it does not become ready.
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

    /// Starts the process again with the same data and port.
    pub async fn run(&mut self) -> Result<(), StartError> {
        assert!(self.child.is_none(), "the server still runs");
        let child = self.command().and_then(|mut command| command.spawn());
        self.child = Some(child.expect("the server's process starts"));
        let started = Instant::now();
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
            if started.elapsed() > READY_WITHIN {
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
        let mut command = match (&self.options.strace, self.options.open_files_max) {
            (None, None) if self.options.unprivileged && rustix::process::geteuid().is_root() => {
                std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))?;
                let mut setpriv = Command::new("setpriv");
                setpriv
                    .arg(format!("--reuid={NOBODY}"))
                    .arg(format!("--regid={NOBODY}"))
                    .arg("--clear-groups")
                    .arg(binary::path());
                setpriv
            }
            (None, None) => Command::new(binary::path()),
            (None, Some(max)) => {
                let mut shell = Command::new("sh");
                let script = format!("ulimit -n {max}; exec \"$0\" \"$@\"");
                shell.arg("-c").arg(script).arg(binary::path());
                shell
            }
            (Some(arguments), _) => {
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
            // Scripts are played without the pauses that are for people.
            .env("TURNWIRE_MODEL_SCRIPT_PACE_PERCENT", "0")
            .envs(self.options.env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(stderr.try_clone()?)
            .stderr(stderr);
        Ok(command)
    }

    /// The address the server listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A new [`ApiClient`] of the server.
    pub fn api(&self) -> ApiClient {
        ApiClient::new(self.addr, self.journal.clone())
    }

    /// The journal that all clients of this server share.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The data folder of the server.
    pub fn home(&self) -> PathBuf {
        let own = || self.folder.path().join("home");
        self.options.home.clone().unwrap_or_else(own)
    }

    /// The folder with the files of the pack.
    pub fn pack_dir(&self) -> PathBuf {
        self.folder.path().join("pack")
    }

    /// Replaces the pack's files; the running server reloads them by itself.
    pub fn repack(&mut self, pack: TestPack) {
        pack.write(&self.pack_dir()).expect("a pack is written");
        self.options.pack = ServerPack::Pack(pack);
    }

    /// The folder with configuration and output.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn stderr_path(&self) -> PathBuf {
        self.folder.path().join("stderr.txt")
    }

    /// Everything written to standard output and error, over all restarts.
    pub fn stderr(&self) -> String {
        let bytes = std::fs::read(self.stderr_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The process id of the server, also under `strace`.
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

    /// Sends a signal to the server.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        // The process may just have exited.
        let _ = kill_process(pid.expect("a process has an id"), signal);
    }

    /// Sends SIGKILL and waits for the exit.
    pub async fn kill(&mut self) {
        self.journal.fault(FaultKind::Kill);
        self.signal(Signal::KILL);
        self.wait(Duration::from_secs(60)).await;
    }

    /// Sends SIGTERM; use [`Self::wait`] to wait for the exit.
    pub fn sigterm(&self) {
        self.journal.fault(FaultKind::Term);
        self.signal(Signal::TERM);
    }

    /// Waits for the exit and returns the status.
    pub async fn wait(&mut self, within: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            let child = self.child.as_mut().expect("the server runs");
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                self.child = None;
                return status;
            }
            assert!(
                started.elapsed() < within,
                "the server did not exit within {within:?}:\n{}",
                self.stderr()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills the server and starts it again.
    pub async fn restart(&mut self) {
        self.kill().await;
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
                // `strace` exits with the traced process.
                let started = Instant::now();
                while started.elapsed() < Duration::from_secs(2)
                    && matches!(child.try_wait(), Ok(None))
                {
                    std::thread::sleep(POLL);
                }
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let stderr = self.stderr();
            let tail = stderr.len().saturating_sub(4_000);
            let tail = stderr.get(tail..).unwrap_or(&stderr);
            println!("output of the server on {}:\n{tail}", self.addr);
        }
    }
}
