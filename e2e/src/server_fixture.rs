//! A server with one session for focused tests. [`ServerFixture::check_history`] checks everything
//! that its clients saw, as at the end of a campaign.

use turnwire_event::{Event, EventType, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::history::History;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use crate::load;

/// A running server with one session.
#[derive(Debug)]
pub struct ServerFixture {
    pub server: TestServer,
    /// An HTTP client of the server.
    pub api: ApiClient,
    pub session: SessionId,
}

impl ServerFixture {
    /// Starts a server and creates a session.
    pub async fn new(options: ServerOptions) -> Self {
        let server = TestServer::start(options).await;
        let api = server.api();
        let session = api.create().await.expect("a session");
        Self {
            server,
            api,
            session,
        }
    }

    /// A server whose model answers every message with these steps.
    pub async fn saying(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self::new(ServerOptions::script(ModelScript::new().on("", steps))).await
    }

    /// Connects a WebSocket without subscribing.
    pub async fn connect(&self, name: &str) -> WatchClient {
        let client = WatchClient::connect(&self.api, name, self.session).await;
        client.expect("a connection")
    }

    /// Connects a WebSocket and subscribes.
    pub async fn watch(&self, name: &str, ask: SubscribeOptions) -> WatchClient {
        let mut client = self.connect(name).await;
        client.subscribed(&ask).await.expect("an acknowledgement");
        client
    }

    /// Submits a turn, which must be accepted.
    pub async fn submit(&self, message: &str) -> TurnId {
        let answer = self.api.submit(self.session, message).await;
        answer.expect("an answer").turn_id
    }

    /// Submits a turn and returns all its events, as a WebSocket client sees them.
    pub async fn turn(&self, message: &str) -> Vec<Event> {
        let mut client = self
            .watch(&format!("turn {message}"), SubscribeOptions::live())
            .await;
        let turn = self.submit(message).await;
        client.turn(turn).await.expect("the turn's events")
    }

    /// The stored events of the session.
    pub async fn log(&self) -> Vec<Event> {
        let events = self.api.events(self.session).await.expect("an answer");
        let read = |text: &str| Event::read(text.as_bytes()).expect("a stored event");
        events.iter().map(|logged| read(&logged.text)).collect()
    }

    /// Waits for a stored event for which `wanted` is true, and returns it.
    pub async fn logged(&self, wanted: impl Fn(&Event) -> bool) -> Event {
        for _ in 0..200 {
            if let Some(event) = self.log().await.into_iter().find(|event| wanted(event)) {
                return event;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("no such event: {:?}", kinds(&self.log().await))
    }

    /// Waits until the session is idle, and runs the history checker.
    pub async fn check_history(&self) -> History {
        load::wait_until_idle(&self.api, self.session).await;
        load::check_history(&self.api, &[self.session]).await
    }
}

/// The event types in order.
pub fn kinds(events: &[Event]) -> Vec<EventType> {
    events.iter().map(|event| event.body.kind()).collect()
}

/// The event types, with repetitions removed: the number of deltas is not promised.
pub fn shape(events: &[Event]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = kinds(events).iter().map(|kind| kind.name()).collect();
    names.dedup();
    names
}
