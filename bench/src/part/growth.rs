//! Growth: what a session, a turn, a delta, an event and a byte of input add to the database, and
//! what sessions, connections and running turns add to the server's memory.
//!
//! Disk is counted in pages that the database uses, including those still in the write-ahead log:
//! the size of the file after a checkpoint, without free pages.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{BenchConfig, BenchScope};
use crate::http::HttpConnection;
use crate::load::{WatcherPool, subscribe_frame};
use crate::machine;
use crate::process::ServerProcess;
use crate::report::ReportSection;
use crate::sample::WORDS;
use crate::stat::{median, short};

/// Sessions that are created, and the turns of each kind.
const SESSIONS: u64 = 2_000;
const TURNS: u64 = 600;
/// Deltas of a turn with many.
const DELTAS: u64 = 200;
const FEEDBACKS: u64 = 5_000;
/// Turns with a large message, and its size in bytes.
const INPUTS: u64 = 20;
const INPUT_BYTES: u64 = 500_000;
/// Turns in flight and idle connections whose memory is measured.
const RUNNING: u64 = 200;
const IDLE: u64 = 500;
/// Sessions and turns belong to this many owners, because one owner has its share only.
const OWNERS: u64 = 20;
/// How long memory may settle before it is read.
const SETTLE: Duration = Duration::from_secs(2);

/// Bytes that the database in `dir` uses.
fn used_bytes(dir: &Path) -> io::Result<u64> {
    let read = || -> rusqlite::Result<u64> {
        let file = dir.join("turnwire.sqlite3");
        let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let pragma = |name: &str| database.pragma_query_value(None, name, |row| row.get(0));
        let (pages, free, size): (i64, i64, i64) = (
            pragma("page_count")?,
            pragma("freelist_count")?,
            pragma("page_size")?,
        );
        Ok(((pages - free) * size).unsigned_abs())
    };
    read().map_err(io::Error::other)
}

/// A server whose growth is measured step by step.
struct GrowingServer {
    dir: PathBuf,
    server: ServerProcess,
    owners: Vec<HttpConnection>,
    sessions: Vec<String>,
}

impl GrowingServer {
    fn start(bench: &BenchConfig) -> io::Result<Self> {
        let dir = bench.fresh_dir("growth")?;
        let script = bench.data.join("growth.yaml");
        std::fs::write(&script, self::script())?;
        let mut command = bench.turnwire(&dir, &[]);
        command.arg("--script").arg(script);
        let server = ServerProcess::start(command)?;
        let connect = |number| Self::connect(server.address, number);
        let owners = (0..OWNERS).map(connect).collect::<io::Result<Vec<_>>>()?;
        Ok(Self {
            dir,
            server,
            owners,
            sessions: Vec::new(),
        })
    }

    fn connect(address: SocketAddr, number: u64) -> io::Result<HttpConnection> {
        HttpConnection::connect_as(address, &format!("owner-{number}"))
    }

    /// The owner of a session, by the session's index.
    fn owner(&mut self, index: usize) -> &mut HttpConnection {
        let count = self.owners.len();
        &mut self.owners[index % count]
    }

    /// The growth of the database by `work`, divided by `count`.
    fn disk(
        &mut self,
        count: u64,
        work: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<f64> {
        let before = used_bytes(&self.dir)?;
        work(self)?;
        let grown = used_bytes(&self.dir)?.saturating_sub(before);
        Ok(grown as f64 / count as f64)
    }

    /// The growth of resident memory by `work`, divided by `count`, in KiB. What `work` returns is
    /// held while memory is read.
    fn memory<T>(
        &mut self,
        count: u64,
        work: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<f64> {
        std::thread::sleep(SETTLE);
        let before = machine::resident_kb(self.server.pid())?;
        let held = work(self)?;
        std::thread::sleep(SETTLE);
        let after = machine::resident_kb(self.server.pid())?;
        drop(held);
        Ok(after.saturating_sub(before) as f64 / count as f64)
    }

    fn create_sessions(&mut self, count: u64) -> io::Result<()> {
        for index in 0..count as usize {
            let session = self.owner(index).create_session()?;
            self.sessions.push(session);
        }
        Ok(())
    }

    /// Runs `count` turns to their end, spread over the sessions.
    fn run_turns(&mut self, count: u64, message: &str) -> io::Result<()> {
        for index in 0..count as usize {
            let index = index % self.sessions.len();
            let session = self.sessions[index].clone();
            let turn = self.owner(index).submit(&session, message)?;
            self.owner(index).await_turn(&turn)?;
        }
        Ok(())
    }

    /// Starts `count` turns that wait for their model.
    fn start_turns(&mut self, count: u64) -> io::Result<()> {
        for index in 0..count as usize {
            let session = self.sessions[index].clone();
            self.owner(index).submit(&session, "stall")?;
        }
        Ok(())
    }

    fn post_feedback(&mut self, count: u64) -> io::Result<()> {
        let address = self.server.address;
        let mut http = HttpConnection::connect(address)?;
        let session = http.create_session()?;
        let turn = http.submit(&session, "one")?;
        http.await_turn(&turn)?;
        let request = HttpConnection::feedback_bytes(address, &session, &turn);
        for _ in 0..count {
            http.send(&request)?;
            let (status, _) = http.receive()?;
            if status != 202 {
                return Err(io::Error::other(format!("feedback: HTTP {status}")));
            }
        }
        Ok(())
    }

    /// Opens `count` WebSockets that subscribe and wait.
    fn open_connections(&mut self, count: u64) -> io::Result<Vec<WatcherPool>> {
        let subscribe = subscribe_frame(r#""preset:full""#, None);
        let owners = self.owners.len();
        let mut pools = Vec::with_capacity(owners);
        for (number, http) in self.owners.iter_mut().enumerate() {
            let session = std::slice::from_ref(&self.sessions[number]);
            let each = count as usize / owners;
            let mut pool = WatcherPool::connect(http, session, each, Some(&subscribe))?;
            pool.await_acks()?;
            pools.push(pool);
        }
        Ok(pools)
    }
}

/// The model's script: one delta, many, or none for a minute.
fn script() -> String {
    let many = WORDS.repeat(DELTAS as usize);
    let chunk = WORDS.len();
    format!(
        "- when: {{user: '^many'}}\n  steps: [{{text: '{many}', chunk: {chunk}}}]\n\
         - when: {{user: '^stall'}}\n  steps: [{{pause_ms: 60000}}, {{text: '{WORDS}'}}]\n\
         - when: {{user: ''}}\n  steps: [{{text: '{WORDS}', chunk: {chunk}}}]\n"
    )
}

/// The figures of one round: bytes on disk, then KiB in memory.
#[derive(Clone, Copy, Debug)]
struct GrowthFigures {
    session: f64,
    turn: f64,
    delta: f64,
    event: f64,
    input_byte: f64,
    session_kb: f64,
    turn_kb: f64,
    connection_kb: f64,
}

fn measure(bench: &BenchConfig) -> io::Result<GrowthFigures> {
    let scaled = |full| bench.scaled(full).max(OWNERS);
    let mut server = GrowingServer::start(bench)?;
    // Tables, indexes and caches that exist once are not counted.
    server.create_sessions(OWNERS)?;
    server.run_turns(OWNERS, "one")?;
    server.post_feedback(1)?;
    let (sessions, turns) = (scaled(SESSIONS), scaled(TURNS));
    let mut session = 0.0;
    let session_kb = server.memory(sessions, |server| {
        session = server.disk(sessions, |server| server.create_sessions(sessions))?;
        Ok(())
    })?;
    let turn = server.disk(turns, |server| server.run_turns(turns, "one"))?;
    let many = server.disk(turns, |server| server.run_turns(turns, "many"))?;
    let feedbacks = scaled(FEEDBACKS);
    let event = server.disk(feedbacks, |server| server.post_feedback(feedbacks))?;
    let message = "x".repeat(INPUT_BYTES as usize);
    let input = server.disk(INPUTS, |server| server.run_turns(INPUTS, &message))?;
    let idle = scaled(IDLE);
    let connection_kb = server.memory(idle, |server| server.open_connections(idle))?;
    let running = scaled(RUNNING);
    let turn_kb = server.memory(running, |server| server.start_turns(running))?;
    let dir = server.dir.clone();
    drop(server);
    std::fs::remove_dir_all(dir)?;
    Ok(GrowthFigures {
        session,
        turn,
        delta: (many - turn).max(0.0) / (DELTAS - 1) as f64,
        event,
        input_byte: (input - turn).max(0.0) / INPUT_BYTES as f64,
        session_kb,
        turn_kb,
        connection_kb,
    })
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut rounds = Vec::new();
    if bench.scope == BenchScope::Both {
        for _ in 0..bench.rounds {
            bench.say("growth");
            rounds.push(measure(bench)?);
        }
    }
    let cell = |figure: fn(&GrowthFigures) -> f64, unit: &str| {
        let figures: Vec<f64> = rounds.iter().map(figure).collect();
        match figures.is_empty() {
            true => "–".to_owned(),
            false => format!("{} {unit}", short(median(&figures))),
        }
    };
    let none = || "–".to_owned();
    let row = |name: &str, disk: String, memory: String| vec![name.to_owned(), disk, memory];
    Ok(ReportSection {
        title: "Growth",
        text: format!(
            "What each adds to the database (used pages, after a checkpoint) and, while it is \
             loaded, open or running, to the resident memory of the server. A turn has a message of \
             one word and an answer of one delta; a delta is {} bytes of text, in turns of {DELTAS}; an \
             event is a feedback with a comment of 45 bytes; a message of {} kB adds this many bytes for each \
             of its own. A running turn waits for its model.",
            WORDS.len(),
            INPUT_BYTES / 1_000,
        ),
        columns: vec!["one", "on disk", "in memory"],
        rows: vec![
            row(
                "session",
                cell(|f| f.session, "B"),
                cell(|f| f.session_kb, "KiB while it is loaded"),
            ),
            row(
                "turn",
                cell(|f| f.turn, "B"),
                cell(|f| f.turn_kb, "KiB while it runs"),
            ),
            row("delta", cell(|f| f.delta, "B"), none()),
            row("event", cell(|f| f.event, "B"), none()),
            row("byte of input", cell(|f| f.input_byte, "B"), none()),
            row("idle WebSocket", none(), cell(|f| f.connection_kb, "KiB")),
        ],
        aims: Vec::new(),
        peers: None,
        others: 0.0,
    })
}
