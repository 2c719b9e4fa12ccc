//! The agents of `examples/`, in Python, each in an environment of its own.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use turnwire_testkit::environment;

/// The start of the line that says where the agent listens.
const READY: &str = "Uvicorn running on ";
/// How long an agent may take to start: it imports a framework.
const START_WAIT: Duration = Duration::from_secs(60);

/// A running agent; dropping it kills the process.
#[derive(Debug)]
pub struct ExampleAgent {
    child: Child,
    name: &'static str,
    address: String,
    log: Arc<Mutex<String>>,
}

impl ExampleAgent {
    /// Starts `examples/{name}/agent.py` on a free port.
    pub fn start(name: &'static str) -> Self {
        let python = environment::example(name).join("bin/python");
        let mut child = Command::new(python)
            .arg("agent.py")
            .current_dir(Self::folder(name))
            .env("PORT", "0")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let lines = BufReader::new(child.stderr.take().expect("its log")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let (ready, address) = mpsc::channel();
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once(READY) {
                    let address = rest.split(' ').next().unwrap_or_default();
                    let _ = ready.send(address.to_owned());
                }
                let mut log = written.lock().expect("no panic holds it");
                *log += &line;
                log.push('\n');
            }
        });
        let address = address.recv_timeout(START_WAIT);
        let address = address.unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("{name} does not listen:\n{}", log.lock().expect("its log"))
        });
        Self {
            child,
            name,
            address,
            log,
        }
    }

    fn folder(name: &str) -> PathBuf {
        environment::root().join("examples").join(name)
    }

    /// The folder of its pack.
    pub fn pack(&self) -> PathBuf {
        Self::folder(self.name).join("pack")
    }

    /// Where it takes turns.
    pub fn url(&self) -> String {
        format!("{}/turns", self.address)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        self.log.lock().expect("no panic holds it").clone()
    }

    /// As a crash of the agent would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ExampleAgent {
    fn drop(&mut self) {
        self.kill();
    }
}
