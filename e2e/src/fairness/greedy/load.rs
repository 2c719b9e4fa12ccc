//! The loads, one per resource. Each runs until its future is dropped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::{GreedyCounts, PAUSE, repeat};
use crate::fairness::client::{LoadClient, LoadConnection, LoadReply, START};
use crate::fairness::resource::{CONNECTIONS_MAX, SharedResource};

/// Connections that read lists of sessions in parallel.
const LIST_READERS: usize = 32;
/// Connections that scan the large session in parallel.
const SCANNERS: usize = 64;
/// Readers that replay, and those of them that do not read what they asked for.
const REPLAY_READERS: usize = 48;
const STALLED: usize = 32;
/// How long a stalled reader waits before it asks again.
const STALL: Duration = Duration::from_secs(5);
/// Tasks that submit turns, and the turns at which they stop.
const SUBMITTERS: usize = 16;
const TURNS_MAX: usize = 2_000;
/// Turns with eight programs each.
const PROGRAM_TURNS_MAX: usize = 40;
/// Connections that request tokens, and requests that each sends at once until one is refused.
const TOKEN_READERS: usize = 16;
const TOKENS_AT_ONCE: usize = 32;
/// Connections that the greedy owner wants: more than the server accepts.
const CONNECTIONS: usize = CONNECTIONS_MAX + CONNECTIONS_MAX / 4;

/// What every task of a load has.
#[derive(Clone)]
struct LoadTask {
    client: LoadClient,
    session: String,
    counts: Arc<GreedyCounts>,
}

/// Runs the load on `resource` until the future is dropped.
pub(super) async fn run(
    resource: SharedResource,
    client: LoadClient,
    session: String,
    counts: Arc<GreedyCounts>,
) {
    let task = LoadTask {
        client,
        session,
        counts,
    };
    let mut tasks = JoinSet::new();
    match resource {
        SharedResource::Lists => {
            for _ in 0..LIST_READERS {
                tasks.spawn(task.clone().read_pages("/sessions?limit=200".to_owned()));
            }
            task.counts.note_ramped();
        }
        SharedResource::Scans => {
            for number in 0..SCANNERS {
                // Neither type occurs in the session.
                let types = ["approval.requested", "approval.resolved,worker.spawned"][number % 2];
                let path = format!("/sessions/{}/events?types={types}&limit=1", task.session);
                tasks.spawn(task.clone().read_pages(path));
            }
            task.counts.note_ramped();
        }
        SharedResource::Replays => {
            for number in 0..REPLAY_READERS {
                match number < STALLED {
                    true => tasks.spawn(task.clone().replay_stalled()),
                    false => tasks.spawn(task.clone().replay()),
                };
            }
            task.counts.note_ramped();
        }
        SharedResource::Turns => task.submit_all(&mut tasks, "long", TURNS_MAX),
        SharedResource::Programs => task.submit_all(&mut tasks, "nap", PROGRAM_TURNS_MAX),
        SharedResource::Tokens => {
            for _ in 0..TOKEN_READERS {
                tasks.spawn(task.clone().request_tokens());
            }
        }
        SharedResource::Connections => {
            let open = Arc::new(AtomicUsize::new(0));
            for number in 0..CONNECTIONS {
                tasks.spawn(task.clone().hold_connection(number, Arc::clone(&open)));
            }
        }
    }
    tasks.join_all().await;
}

impl LoadTask {
    /// Reads a list on one connection, page by page and from the start again.
    async fn read_pages(self, path: String) {
        let mut next: Option<String> = None;
        loop {
            let mut connection = match self.client.connect(None).await {
                Ok(connection) => connection,
                Err(error) => {
                    self.pause_after(Err(error)).await;
                    continue;
                }
            };
            loop {
                let page = match &next {
                    Some(next) => format!("{path}&{next}"),
                    None => path.clone(),
                };
                let answer = exchange(&mut connection, &page).await;
                next = answer.as_ref().ok().and_then(cursor);
                let is_open = answer.is_ok();
                self.pause_after(answer).await;
                if !is_open {
                    break;
                }
            }
        }
    }

    /// Counts an answer, and pauses if it was not a good one.
    async fn pause_after(&self, answer: io::Result<LoadReply>) {
        if !self.counts.note(&answer) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Replays the session again and again, and reads everything.
    async fn replay(self) {
        repeat(async || {
            let opened = self
                .client
                .subscribe(&self.session, Some(START), None)
                .await;
            let Some(mut connection) = self.opened(opened) else {
                return false;
            };
            let mut buffer = vec![0; 64 << 10];
            // The replay is over when nothing more comes.
            while let Ok(Ok(1..)) = tokio::time::timeout(Duration::from_millis(100), async {
                let read = connection.read_some(&mut buffer).await?;
                self.counts.bytes.fetch_add(read as u64, Ordering::Relaxed);
                io::Result::Ok(read)
            })
            .await
            {}
            true
        })
        .await;
    }

    /// Asks for a replay and reads nothing of it.
    async fn replay_stalled(self) {
        repeat(async || {
            let opened = self
                .client
                .subscribe(&self.session, Some(START), Some(4_096))
                .await;
            let Some(_connection) = self.opened(opened) else {
                return false;
            };
            tokio::time::sleep(STALL).await;
            true
        })
        .await;
    }

    /// Counts the outcome of a subscribe, and returns the connection if there is one.
    fn opened(
        &self,
        opened: io::Result<Result<LoadConnection, LoadReply>>,
    ) -> Option<LoadConnection> {
        let (answer, connection) = match opened {
            Ok(Ok(connection)) => {
                let reply = LoadReply {
                    status: 200,
                    ..LoadReply::default()
                };
                (Ok(reply), Some(connection))
            }
            Ok(Err(reply)) => (Ok(reply), None),
            Err(error) => (Err(error), None),
        };
        self.counts.note(&answer);
        connection
    }

    /// Starts tasks that submit turns, each in a session of its own, up to `max`.
    fn submit_all(&self, tasks: &mut JoinSet<()>, message: &'static str, max: usize) {
        let running = Arc::new(AtomicUsize::new(0));
        for _ in 0..SUBMITTERS {
            tasks.spawn(self.clone().submit(message, max, Arc::clone(&running)));
        }
    }

    async fn submit(self, message: &str, max: usize, running: Arc<AtomicUsize>) {
        let mut free: Option<String> = None;
        loop {
            if running.load(Ordering::Relaxed) >= max {
                self.counts.note_ramped();
                return;
            }
            let session = match free.take() {
                Some(session) => session,
                None => match self.client.create_session().await {
                    Ok(session) => session,
                    Err(error) => {
                        self.pause_after(Err(error)).await;
                        continue;
                    }
                },
            };
            let answer = self.client.submit(&session, message).await;
            match self.counts.note(&answer) {
                true => {
                    running.fetch_add(1, Ordering::Relaxed);
                }
                false => {
                    free = Some(session);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Requests tokens and redeems none: many at once until the server refuses one, then one at a
    /// time, to have each that becomes free.
    async fn request_tokens(self) {
        let path = format!("/sessions/{}", self.session);
        repeat(async || {
            let Ok(mut connection) = self.client.connect(None).await else {
                return false;
            };
            loop {
                let at_once = match self.counts.is_ramped() {
                    true => 1,
                    false => TOKENS_AT_ONCE,
                };
                for _ in 0..at_once {
                    if connection.send("GET", &path, None).await.is_err() {
                        return false;
                    }
                }
                let mut refused = false;
                for _ in 0..at_once {
                    let answer = connection.reply().await;
                    refused |= !self.counts.note(&answer);
                    if answer.is_err() {
                        return false;
                    }
                }
                if refused {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        })
        .await;
    }

    /// Holds one connection open, and opens it again when the server has closed it: idle after a
    /// request, with half a head, or subscribed.
    async fn hold_connection(self, number: usize, open: Arc<AtomicUsize>) {
        // Not all in the same moment.
        tokio::time::sleep(Duration::from_millis((number % 100) as u64 * 10)).await;
        repeat(async || {
            let connection = match number % 3 {
                0 => self.idle().await,
                1 => self.half_open().await,
                _ => {
                    let opened = self.client.subscribe(&self.session, None, None).await;
                    self.opened(opened)
                }
            };
            let Some(mut connection) = connection else {
                return false;
            };
            if open.fetch_add(1, Ordering::Relaxed) + 1 >= CONNECTIONS_MAX - 50 {
                self.counts.note_ramped();
            }
            let mut buffer = [0; 512];
            while let Ok(1..) = connection.read_some(&mut buffer).await {
                if buffer.starts_with(b"HTTP/1.1 429") {
                    self.note_status(429);
                }
            }
            open.fetch_sub(1, Ordering::Relaxed);
            false
        })
        .await;
    }

    fn note_status(&self, status: u16) {
        let reply = LoadReply {
            status,
            ..LoadReply::default()
        };
        self.counts.note(&Ok(reply));
    }

    async fn idle(&self) -> Option<LoadConnection> {
        let mut connection = self.client.connect(None).await.ok()?;
        let answer = exchange(&mut connection, "/healthz").await;
        self.counts.note(&answer).then_some(connection)
    }

    async fn half_open(&self) -> Option<LoadConnection> {
        let mut connection = self.client.connect(None).await.ok()?;
        let head = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-turnwire-";
        connection.send_raw(head).await.ok()?;
        Some(connection)
    }
}

async fn exchange(connection: &mut LoadConnection, path: &str) -> io::Result<LoadReply> {
    connection.send("GET", path, None).await?;
    connection.reply().await
}

/// The query parameter that continues a list after this page. Bodies above 256 KiB have their
/// cursor behind the part that is kept; their list starts again.
fn cursor(reply: &LoadReply) -> Option<String> {
    let next = reply.text("next")?;
    match next.starts_with("evt_") {
        true => Some(format!("since={next}")),
        false => Some(format!("before={next}")),
    }
}
