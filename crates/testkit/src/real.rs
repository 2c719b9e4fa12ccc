//! A real small model: SmolLM2-135M behind llama.cpp's own HTTP server, on a free port of the
//! loopback. It answers `/v1/chat/completions`, `/v1/messages` and `/v1/responses`, all of them
//! streaming, and stops when its caller leaves. Its output differs from run to run, so tests check
//! the form of the stream and not the text.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::environment;

/// Deadline for the weights to load and for a log line, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The weights file that the setup installs.
const WEIGHTS: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// What the server logs, with the task, when a caller left in the middle of a generation.
const CANCELLED: &str = "stop: cancel task";
/// What the server logs after the task's number when a generation has ended, whyever.
const RELEASED: &str = "stop processing";

/// A running model server; dropping it kills the process.
#[derive(Debug)]
pub struct RealModel {
    child: Child,
    lines: Arc<watch::Sender<Vec<String>>>,
    base_url: String,
}

impl Drop for RealModel {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RealModel {
    /// The model's name in requests.
    pub const NAME: &str = "smollm2-135m";

    /// Installs what is missing, starts the server and waits until it answers.
    pub async fn start() -> Self {
        let folder = tokio::task::spawn_blocking(environment::real_model)
            .await
            .expect("the setup of the real model");
        let mut child = Command::new(folder.join("bin/python"))
            .arg(environment::root().join("e2e/real/serve.py"))
            .arg(folder.join(WEIGHTS))
            .arg(Self::NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the model's server starts");
        let lines = Arc::new(watch::Sender::new(Vec::new()));
        follow(child.stdout.take(), &lines);
        follow(child.stderr.take(), &lines);
        let mut model = Self {
            child,
            lines,
            base_url: String::new(),
        };
        let ready = model.logged("ready ").await;
        model.base_url = ready.trim_start_matches("ready ").trim().to_owned();
        model
    }

    /// The URL without a path, such as `http://127.0.0.1:40123`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The socket address of the server.
    pub fn addr(&self) -> std::net::SocketAddr {
        let addr = self.base_url.trim_start_matches("http://").parse();
        addr.expect("the server prints where it listens")
    }

    /// All log lines of the server so far.
    pub fn log(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    /// Waits for the first line with this text.
    pub async fn logged(&self, text: &str) -> String {
        self.logged_times(text, 1).await
    }

    /// Waits until so many generations were stopped because their callers left, and the last of
    /// them has ended.
    pub async fn stopped(&self, count: usize) {
        let cancelled = self.logged_times(CANCELLED, count).await;
        let (_, task) = cancelled.rsplit_once("= ").expect("the log names the task");
        self.logged(&format!("| task {} | {RELEASED}", task.trim()))
            .await;
    }

    /// How many generations were stopped so far because their callers left.
    pub fn stops(&self) -> usize {
        let lines = self.lines.borrow();
        lines.iter().filter(|line| line.contains(CANCELLED)).count()
    }

    async fn logged_times(&self, text: &str, count: usize) -> String {
        let mut changes = self.lines.subscribe();
        let has = |lines: &Vec<String>| lines.iter().filter(|l| l.contains(text)).count() >= count;
        let waited = tokio::time::timeout(PATIENCE, changes.wait_for(has));
        // What it returns holds a lock: a second one behind a writer that waits would never come.
        let is_logged = matches!(waited.await, Ok(Ok(_)));
        assert!(
            is_logged,
            "the model's server did not log {text:?} {count} times: {:#?}",
            self.log()
        );
        let lines = self.lines.borrow();
        let mut matching = lines.iter().filter(|line| line.contains(text));
        matching.nth(count - 1).cloned().unwrap_or_default()
    }
}

/// Puts every line into the log, on a thread that ends with the process.
fn follow(stream: Option<impl Read + Send + 'static>, lines: &Arc<watch::Sender<Vec<String>>>) {
    let stream = BufReader::new(stream.expect("the stream is piped"));
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in stream.lines().map_while(Result::ok) {
            lines.send_modify(|all| all.push(line));
        }
    });
}
