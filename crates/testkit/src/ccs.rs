//! A data service that does as it is told: a real HTTP server on the loopback that answers
//! `POST /v1/enrich` for each enricher with what a test set, at the pace the test wants, and
//! remembers every request, when it came, when its answer was written, and whether the caller
//! left before.

mod envelope;
mod reply;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub use envelope::{changed, envelope, marked, offers};
pub use reply::Reply;

/// How often something is looked at again that is waited for.
const POLL: Duration = Duration::from_millis(5);

/// A request that came.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which enricher it asks for; empty if it does not say.
    pub enricher: String,
    /// Its head: the request line and the headers.
    pub head: String,
    /// Its body; null if it is no JSON.
    pub request: Value,
    /// When it came.
    pub arrived: Instant,
    /// When the whole answer was written.
    pub answered: Option<Instant>,
    /// Whether the caller left before that.
    pub cut: bool,
}

impl Call {
    /// For whom it asks; empty if it does not say.
    pub fn principal(&self) -> &str {
        self.request["principal"].as_str().unwrap_or_default()
    }

    /// Whether it has come to its end, one way or the other.
    pub fn is_over(&self) -> bool {
        self.answered.is_some() || self.cut
    }
}

#[derive(Debug, Default)]
struct Desk {
    /// What is answered next, for each enricher; the last stays.
    replies: BTreeMap<String, VecDeque<Reply>>,
    /// By the order in which they came, counted from the start.
    calls: BTreeMap<u64, Call>,
    count: u64,
}

impl Desk {
    /// Takes down a request; says which one it is and what to answer.
    fn arrive(&mut self, head: String, request: Value) -> (u64, Reply) {
        let enricher = request["enricher_id"].as_str().unwrap_or_default();
        let enricher = enricher.to_owned();
        let reply = match self.replies.get_mut(&enricher) {
            Some(replies) if replies.len() > 1 => replies.pop_front(),
            Some(replies) => replies.front().cloned(),
            None => None,
        };
        self.count += 1;
        let call = Call {
            enricher,
            head,
            request,
            arrived: Instant::now(),
            answered: None,
            cut: false,
        };
        self.calls.insert(self.count, call);
        let reply = reply.unwrap_or_else(|| Reply::http("404 Not Found", &[], "{}"));
        (self.count, reply)
    }

    fn end(&mut self, id: u64, whole: bool) {
        // Those that were taken are not told any more.
        if let Some(call) = self.calls.get_mut(&id) {
            call.answered = whole.then(Instant::now);
            call.cut = !whole;
        }
    }
}

/// The service. It goes, with every connection, when it is dropped.
#[derive(Debug)]
pub struct Ccs {
    addr: SocketAddr,
    desk: Arc<Mutex<Desk>>,
    task: AbortHandle,
}

impl Ccs {
    /// A service on a free port that knows two offers, the points and an answer of support.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let desk = Arc::new(Mutex::new(Desk::default()));
        let shared = Arc::clone(&desk);
        let task = tokio::spawn(async move {
            // Connections go with the service.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(converse(socket, Arc::clone(&shared)));
                while connections.try_join_next().is_some() {}
            }
        });
        let ccs = Self {
            addr,
            desk,
            task: task.abort_handle(),
        };
        for enricher in ["offer_search", "points", "answers"] {
            ccs.set(enricher, Reply::envelope(&envelope(enricher)));
        }
        ccs
    }

    /// Where it is, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What it answers for an enricher from now on.
    pub fn set(&self, enricher: &str, reply: Reply) {
        self.set_all(enricher, vec![reply]);
    }

    /// What it answers for an enricher, one after the other; the last again and again.
    pub fn set_all(&self, enricher: &str, replies: Vec<Reply>) {
        let mut desk = self.desk.lock();
        desk.replies.insert(enricher.to_owned(), replies.into());
    }

    /// The requests so far, in the order they came.
    pub fn calls(&self) -> Vec<Call> {
        self.desk.lock().calls.values().cloned().collect()
    }

    /// The requests so far, which are then forgotten.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.desk.lock().calls)
            .into_values()
            .collect()
    }

    /// The parameters of all requests for an enricher.
    pub fn params(&self, enricher: &str) -> Vec<Value> {
        let calls = self.calls().into_iter();
        let own = calls.filter(|call| call.enricher == enricher);
        own.map(|mut call| call.request["params"].take()).collect()
    }

    /// Waits until `count` requests have come.
    pub async fn asked(&self, count: usize, within: Duration) {
        self.until(within, |calls| calls.len() >= count).await;
    }

    /// Waits until no request is left without its end.
    pub async fn quiet(&self, within: Duration) {
        self.until(within, |calls| calls.iter().all(Call::is_over))
            .await;
    }

    async fn until(&self, within: Duration, done: impl Fn(&[Call]) -> bool) {
        let begun = Instant::now();
        loop {
            let calls = self.calls();
            if done(&calls) {
                return;
            }
            assert!(begun.elapsed() < within, "not within {within:?}: {calls:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Nobody is there any more: connections are cut and the port is closed.
    pub fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Ccs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection: request and answer in turn until one of the two leaves.
async fn converse(mut socket: TcpStream, desk: Arc<Mutex<Desk>>) {
    while let Some((head, body)) = socket::request(&mut socket).await {
        let request = serde_json::from_slice(&body).unwrap_or_default();
        let (id, reply) = desk.lock().arrive(head, request);
        let whole = socket::tell(&mut socket, &reply).await;
        desk.lock().end(id, whole);
        if !whole || !reply.stays() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
