//! One server and the task that keeps it: a connection that ends is opened again, after a wait
//! that grows.
//!
//! ```text
//!            ╭──────────── up: calls go through ───────────╮
//! open ──▶ session                                    ended, flooded, suspected
//!            ╰── connect ◀── wait 0.5 s … 30 s ◀── away ◀──╯
//! ```
//! Whoever holds a `Server` holds it up: the last one that is dropped ends the task, and the task
//! ends the connection.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::service::{Peer, RoleClient};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use turnwire_event::port::BoxFuture;
use turnwire_event::{TurnId, metric};

use crate::mcp::backoff::Backoff;
use crate::mcp::connection::{Connection, Way};
use crate::mcp::error::NoConnection;
use crate::mcp::list::{Found, NoList, list};
use crate::mcp::meter::Meter;
use crate::mcp::open::Open;
use crate::mcp::pulse::{lives, ping};

/// Turns that a server remembers having begun to serve; one that is forgotten is told of again.
const TURNS_MAX: usize = 1_024;
/// Suspicions that wait to be looked at; one is enough.
const SUSPECTS_MAX: usize = 16;

/// How long a pack that is read again waits for a server that is away.
const AWAY_MAX: Duration = Duration::from_secs(2);

/// Pings without an answer until a program is left: it reads all from one pipe.
const PINGS: usize = 1;
/// The same over HTTP, where one that does a thing after the other may be at what we have dropped.
const PINGS_OVER_HTTP: usize = 2;

/// For a server to be gone that is told to: longer than a connection and a program have together.
const OVER_MAX: Duration = Duration::from_secs(5);

/// A way to a server that is open now.
#[derive(Clone)]
pub(crate) struct Session {
    /// Which of the server's lives it is of.
    life: u64,
    pub(crate) peer: Peer<RoleClient>,
    /// Of its connection; who doubts it says so here, and the server is asked.
    pub(crate) meter: Arc<Meter>,
    /// The calls that are under way.
    pub(crate) open: Arc<Open>,
}

/// A server that is kept.
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    /// None while it is away. The task holds the other end.
    session: watch::Receiver<Option<Session>>,
    /// Lives that seem to be over.
    suspects: mpsc::Sender<u64>,
    /// What it listed last.
    known: Arc<Mutex<Vec<Found>>>,
    served: Mutex<VecDeque<TurnId>>,
    within: Duration,
    stop: CancellationToken,
    _stop: DropGuard,
}

impl Server {
    /// Connects until `until` and keeps the connection; every later start has `within`.
    pub(crate) async fn start(
        name: &str,
        way: Way,
        (within, until): (Duration, Instant),
    ) -> Result<Arc<Self>, NoConnection> {
        let name: Arc<str> = name.into();
        let connection = Connection::open(&name, &way, (within, until)).await?;
        let (told, session) = watch::channel(None);
        let (suspects, suspected) = mpsc::channel(SUSPECTS_MAX);
        let known = Arc::new(Mutex::default());
        let stop = CancellationToken::new();
        let keeper = Keeper {
            name: Arc::clone(&name),
            way,
            within,
            told,
            suspected,
            known: Arc::clone(&known),
            stop: stop.clone(),
        };
        keeper.tell(0, &connection);
        tokio::spawn(keeper.keep(connection));
        Ok(Arc::new(Self {
            name,
            session,
            suspects,
            known,
            served: Mutex::default(),
            within,
            _stop: stop.clone().drop_guard(),
            stop,
        }))
    }

    /// The way to it, if it is there within `wait`.
    pub(crate) async fn session(&self, wait: Duration) -> Option<Session> {
        let mut session = self.session.clone();
        let there = session.wait_for(Option::is_some);
        match timeout(wait, there).await {
            Ok(Ok(session)) => session.clone(),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Ends it and waits until it is gone, or long enough.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let mut session = self.session.clone();
        // The task drops its end when it is over.
        let over = async { while session.changed().await.is_ok() {} };
        let _ = timeout(OVER_MAX, over).await;
    }

    /// Tells that a session gave no answer that a living one gives.
    pub(crate) fn suspect(&self, session: &Session) {
        // A full queue has suspicions enough.
        let _ = self.suspects.try_send(session.life);
    }

    /// What tools it has now, told until `until`.
    pub(crate) async fn list(&self, until: Instant) -> Result<Vec<Found>, NoList> {
        let wait = until.saturating_duration_since(Instant::now());
        let Some(session) = self.session(wait).await else {
            return Err(NoList::Ended);
        };
        let found = list(&session.peer, (self.within, until)).await?;
        self.known.lock().clone_from(&found);
        Ok(found)
    }

    /// What tools it has now; those that it last listed if it is away or goes. A pack that is read
    /// again with a server that it had before is not to be refused for that.
    pub(crate) async fn list_again(&self, until: Instant) -> Result<Vec<Found>, NoList> {
        let away = self.session.borrow().is_none();
        let until = match away {
            true => until.min(Instant::now() + AWAY_MAX),
            false => until,
        };
        let now = self.list(until).await;
        let last = self.known.lock().clone();
        match now {
            Err(NoList::Ended | NoList::Silent(_)) if !last.is_empty() => {
                tracing::warn!(
                    server = %self.name,
                    "an MCP server is away while the pack is read; the pack has the tools that it listed before"
                );
                Ok(last)
            }
            now => now,
        }
    }

    /// Whether this is the first that it is told of a turn.
    pub(crate) fn first_of(&self, turn_id: TurnId) -> bool {
        let mut served = self.served.lock();
        if served.contains(&turn_id) {
            return false;
        }
        if served.len() == TURNS_MAX {
            served.pop_front();
        }
        served.push_back(turn_id);
        true
    }
}

fn names(found: &[Found]) -> BTreeSet<String> {
    found.iter().map(|tool| tool.name.clone()).collect()
}

/// Why a life ended.
enum End {
    Stopped,
    Ended,
    Flooded,
    Suspected,
}

/// What keeps a server.
struct Keeper {
    name: Arc<str>,
    way: Way,
    within: Duration,
    told: watch::Sender<Option<Session>>,
    suspected: mpsc::Receiver<u64>,
    known: Arc<Mutex<Vec<Found>>>,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(mut self, mut connection: Connection) {
        let mut backoff = Backoff::default();
        let mut life = 0;
        loop {
            let born = Instant::now();
            let end = self.watch(life, &mut connection).await;
            self.told.send_replace(None);
            self.up(-1.0);
            let why = match end {
                End::Stopped => "nobody needs it any more".to_owned(),
                End::Ended => "its side ended it".to_owned(),
                End::Suspected => "it could not be reached".to_owned(),
                End::Flooded => connection
                    .meter
                    .flood()
                    .map_or_else(String::new, |f| f.to_string()),
            };
            connection.close().await;
            if matches!(end, End::Stopped) {
                tracing::debug!(server = %self.name, why, "an MCP server was left");
                return;
            }
            tracing::warn!(server = %self.name, why, "the connection to an MCP server is over");
            backoff.lived(born);
            let stop = self.stop.clone();
            connection = tokio::select! {
                () = stop.cancelled() => return,
                connection = self.again(&mut backoff) => connection,
            };
            life += 1;
            self.tell(life, &connection);
            tracing::info!(server = %self.name, "the MCP server is back");
            let peer = connection.peer.clone();
            let stop = self.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.compare(&peer) => {}
            }
        }
    }

    /// Waits until this life is over.
    async fn watch(&mut self, life: u64, connection: &mut Connection) -> End {
        let (meter, open) = (Arc::clone(&connection.meter), Arc::clone(&connection.open));
        let pings = match self.way {
            Way::Program(_) => PINGS,
            Way::Address { .. } => PINGS_OVER_HTTP,
        };
        let mut asking: Option<BoxFuture<'static, bool>> = None;
        loop {
            let is_asked = asking.is_some();
            let answer = async {
                match &mut asking {
                    Some(asking) => asking.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return End::Stopped,
                () = connection.ended() => {
                    return if meter.flood().is_some() { End::Flooded } else { End::Ended };
                }
                () = meter.flooded() => return End::Flooded,
                lives = answer => {
                    if !lives {
                        return End::Suspected;
                    }
                    asking = None;
                }
                () = meter.doubted(), if !is_asked => {
                    let peer = connection.peer.clone();
                    let (meter, open) = (Arc::clone(&meter), Arc::clone(&open));
                    asking = Some(Box::pin(async move {
                        lives(|| ping(peer.clone()), pings, &meter, &open).await
                    }));
                }
                suspect = self.suspected.recv() => match suspect {
                    Some(suspect) if suspect == life => return End::Suspected,
                    Some(_) => {}
                    None => return End::Stopped,
                },
            }
        }
    }

    /// Connects, however many attempts it takes.
    async fn again(&self, backoff: &mut Backoff) -> Connection {
        loop {
            tokio::time::sleep(backoff.next()).await;
            metrics::counter!(
                metric::MCP_SERVER_RESTARTS_TOTAL,
                "server" => self.name.to_string()
            )
            .increment(1);
            let until = Instant::now() + self.within;
            match Connection::open(&self.name, &self.way, (self.within, until)).await {
                Ok(connection) => return connection,
                Err(why) => tracing::warn!(server = %self.name, %why, "an MCP server is not back"),
            }
        }
    }

    fn tell(&self, life: u64, connection: &Connection) {
        let peer = connection.peer.clone();
        let (meter, open) = (Arc::clone(&connection.meter), Arc::clone(&connection.open));
        let session = Session {
            life,
            peer,
            meter,
            open,
        };
        self.told.send_replace(Some(session));
        self.up(1.0);
    }

    /// Counts connections: while a pack is replaced there may be two servers of one name.
    fn up(&self, more: f64) {
        metrics::gauge!(metric::MCP_SERVER_UP, "server" => self.name.to_string()).increment(more);
    }

    /// Says so if a server came back with other tools. The list that the pack was loaded with
    /// stays: a turn has the tools that it began with (S2-001).
    async fn compare(&self, peer: &Peer<RoleClient>) {
        let Ok(found) = list(peer, (self.within, Instant::now() + self.within)).await else {
            tracing::warn!(server = %self.name, "an MCP server that came back does not list its tools");
            return;
        };
        let now = names(&found);
        let known = names(&self.known.lock());
        if now != known {
            let gone: Vec<&String> = known.difference(&now).collect();
            let new: Vec<&String> = now.difference(&known).collect();
            tracing::warn!(
                server = %self.name, ?gone, ?new,
                "an MCP server came back with other tools; they count when the pack is read again"
            );
        }
    }
}
