//! The real binary as a server on a free port.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use turnwire_client::Client;
use turnwire_testkit::server::free_port;

/// The command.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_turnwire");
/// How long something may take before it is taken for lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server in a process of its own; it is killed when this is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Server {
    /// A server of `dir` that plays `script`, on a free port.
    pub(crate) fn start(dir: &Path, script: &str) -> Self {
        std::fs::write(dir.join("script.yaml"), script).expect("a script");
        Self::listen(dir, &free_port().to_string())
    }

    /// The same again, on the same port, after it was killed.
    pub(crate) fn again(&self, dir: &Path) -> Self {
        Self::listen(dir, &self.address)
    }

    fn listen(dir: &Path, listen: &str) -> Self {
        let script = dir.join("script.yaml");
        Self::serve(dir, listen, &[OsStr::new("--script"), script.as_os_str()])
    }

    /// A server of `dir` with more words on its command line.
    pub(crate) fn serve(dir: &Path, listen: &str, more: &[&OsStr]) -> Self {
        let mut child = Command::new(BINARY)
            .args(["serve", "--listen", listen, "--home"])
            .arg(dir)
            .args(more)
            .env("TURNWIRE_MODEL_SCRIPT_PACE_PERCENT", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("its address");
        let address = line.split("http://").nth(1).expect("an address");
        let address = address.split_whitespace().next().expect("an address");
        Self {
            child,
            address: address.to_owned(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url()).expect("an address")
    }

    /// SIGKILL, at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
