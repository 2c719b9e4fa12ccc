//! The load client: many connections in one thread, read in large pieces and counted by header.
//!
//! It must cost less than what it measures: level-triggered epoll, one read per readiness, no
//! allocation and no JSON per frame. What it did cost is part of every result, and so is what
//! the server's process used in the same span.

pub mod watcher;
pub mod chat;
pub mod dispatch;
pub mod fanout;
pub mod fill;
pub mod idle;
pub mod models;
pub mod replay;
pub mod turns;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use serde::{Deserialize, Serialize};

use crate::frame;
use crate::http::HttpConnection;
use crate::machine;

pub use watcher::Watcher;

/// The run fails if nothing arrives for this long.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Maximum bytes per read: a few hundred frames.
const READ_BYTES: usize = 256 * 1024;

/// The subscribe frame for `filter`, which is JSON, from the cursor `since`.
pub fn subscribe_frame(filter: &str, since: Option<&str>) -> Vec<u8> {
    let since = since.map_or("null".to_owned(), |id| format!("\"{id}\""));
    let json =
        format!(r#"{{"type":"subscribe","filter":{filter},"since":{since},"snapshot":false}}"#);
    frame::client_text(json.as_bytes())
}

/// A filter that takes events of one type, so that every frame after the ack is counted.
pub fn only(event_type: &str) -> String {
    format!(r#"{{"event_types":["{event_type}"],"actors":null,"include_worker_sessions":false}}"#)
}

/// Which sockets have something to read.
pub struct Readiness {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    ready: Vec<usize>,
}

impl Readiness {
    /// An epoll instance without sockets.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(1024),
            ready: Vec::with_capacity(1024),
        })
    }

    /// Watches one more socket under the name `token`.
    pub fn watch(&self, socket: impl AsFd, token: usize) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        Ok(epoll::add(
            &self.epoll,
            socket,
            data,
            epoll::EventFlags::IN,
        )?)
    }

    /// Waits for readable sockets; silence for too long is an error.
    pub fn wait(&mut self) -> io::Result<&[usize]> {
        let timeout = Timespec {
            tv_sec: SILENCE_MAX.as_secs() as i64,
            tv_nsec: 0,
        };
        self.events.clear();
        epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timeout),
        )?;
        if self.events.is_empty() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing arrives"));
        }
        self.ready.clear();
        self.ready
            .extend(self.events.iter().map(|event| event.data.u64() as usize));
        Ok(&self.ready)
    }
}

/// Many watched connections, read by one thread.
pub struct WatcherPool {
    readiness: Readiness,
    pub watchers: Vec<Watcher>,
    buffer: Vec<u8>,
}

impl WatcherPool {
    /// A pool without connections.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            readiness: Readiness::new()?,
            watchers: Vec::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Connects `count` times to one of `sessions` each, in turn, and sends `subscribe` if given.
    pub fn connect(
        http: &mut HttpConnection,
        sessions: &[String],
        count: usize,
        subscribe: Option<&[u8]>,
    ) -> io::Result<Self> {
        let mut pool = Self::new()?;
        for token in 0..count {
            let mut watcher = Watcher::new(http.attach(&sessions[token % sessions.len()])?, 0)?;
            if let Some(subscribe) = subscribe {
                watcher.subscribe(subscribe)?;
            }
            pool.push(watcher)?;
        }
        Ok(pool)
    }

    /// Opens `count` more streams of `turns`, round robin. One after the other, as
    /// WebSockets are opened, so that concurrent connects are not part of the figure.
    pub fn follow(
        &mut self,
        http: &HttpConnection,
        turns: &[String],
        count: usize,
    ) -> io::Result<()> {
        for at in 0..count {
            self.push(Watcher::of_blocks(http.follow(&turns[at % turns.len()])?)?)?;
            self.await_frames(self.watchers.len() - 1, 1)?;
        }
        Ok(())
    }

    fn push(&mut self, watcher: Watcher) -> io::Result<()> {
        self.readiness.watch(&watcher, self.watchers.len())?;
        self.watchers.push(watcher);
        Ok(())
    }

    /// Sends `subscribe` on every connection.
    pub fn subscribe(&mut self, subscribe: &[u8]) -> io::Result<()> {
        self.watchers
            .iter_mut()
            .try_for_each(|watcher| watcher.subscribe(subscribe))
    }

    /// Reads until every connection has its ack.
    pub fn await_acks(&mut self) -> io::Result<()> {
        self.await_frames(0, 1)
    }

    /// Reads until every connection from number `from` on has `least` frames or blocks.
    pub fn await_frames(&mut self, from: usize, least: u64) -> io::Result<()> {
        let waits = |watcher: &&Watcher| watcher.frames < least;
        let mut missing = self.watchers[from..].iter().filter(waits).count();
        while missing > 0 {
            self.turn(|token, before, after| {
                if token >= from && before < least && after >= least {
                    missing -= 1;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Waits once, and reads each readable connection once: `seen` gets its number and its count
    /// of frames before and after.
    pub fn turn(
        &mut self,
        mut seen: impl FnMut(usize, u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        for &token in self.readiness.wait()? {
            let watcher = &mut self.watchers[token];
            let before = watcher.frames;
            watcher.read(&mut self.buffer, |_| {})?;
            if watcher.frames > before {
                seen(token, before, watcher.frames)?;
            }
        }
        Ok(())
    }

    /// Bytes received by the connections of these numbers.
    pub fn bytes(&self, of: Range<usize>) -> u64 {
        self.watchers[of].iter().map(|watcher| watcher.bytes).sum()
    }
}

/// A span of time, with the CPU time that client and server used in it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuSpan {
    /// Seconds on the clock.
    pub seconds: f64,
    /// Seconds of processor in this process.
    pub client_cpu: f64,
    /// Seconds of processor in the server's process.
    pub server_cpu: f64,
}

impl CpuSpan {
    /// The sum of two spans.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            client_cpu: self.client_cpu + other.client_cpu,
            server_cpu: self.server_cpu + other.server_cpu,
        }
    }
}

/// A span that has begun.
#[derive(Debug)]
pub struct Stopwatch {
    pid: u32,
    begun: Instant,
    client: Duration,
    server: Duration,
}

impl Stopwatch {
    /// Begins, with the server's process `pid`.
    pub fn start(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            begun: Instant::now(),
            client: machine::cpu_time(std::process::id())?,
            server: machine::cpu_time(pid)?,
        })
    }

    /// The span so far.
    pub fn span(&self) -> io::Result<CpuSpan> {
        let client = machine::cpu_time(std::process::id())? - self.client;
        let server = machine::cpu_time(self.pid)? - self.server;
        Ok(CpuSpan {
            seconds: self.begun.elapsed().as_secs_f64(),
            client_cpu: client.as_secs_f64(),
            server_cpu: server.as_secs_f64(),
        })
    }
}

/// Where the server is.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Target {
    #[arg(long)]
    pub server: SocketAddr,
    #[arg(long)]
    pub pid: u32,
}
