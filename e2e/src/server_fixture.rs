//! A scene for a test of one thing: a server, one session in it, and those who watch. What was
//! seen is judged by the history checker in the end like any campaign.

use turnwire_event::{Event, EventType, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::history::History;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use crate::load;

/// A server with one session.
#[derive(Debug)]
pub struct ServerFixture {
    pub server: TestServer,
    /// A client of it.
    pub api: ApiClient,
    pub session: SessionId,
}

impl ServerFixture {
    /// Starts a server and makes a session.
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

    /// A server whose model says one thing to everything.
    pub async fn saying(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self::new(ServerOptions::script(ModelScript::new().on("", steps))).await
    }

    /// Connects without asking for anything.
    pub async fn connect(&self, name: &str) -> WatchClient {
        let client = WatchClient::connect(&self.api, name, self.session).await;
        client.expect("a connection")
    }

    /// Connects and subscribes.
    pub async fn watch(&self, name: &str, ask: SubscribeOptions) -> WatchClient {
        let mut client = self.connect(name).await;
        client.subscribed(&ask).await.expect("an acknowledgement");
        client
    }

    /// Submits a turn that is taken.
    pub async fn submit(&self, message: &str) -> TurnId {
        let answer = self.api.submit(self.session, message).await;
        answer.expect("an answer").turn_id
    }

    /// Submits a turn and gives all its events, as one who watches sees them.
    pub async fn turn(&self, message: &str) -> Vec<Event> {
        let mut client = self
            .watch(&format!("turn {message}"), SubscribeOptions::live())
            .await;
        let turn = self.submit(message).await;
        client.turn(turn).await.expect("the turn's events")
    }

    /// The types in the session's log.
    pub async fn log(&self) -> Vec<Event> {
        let events = self.api.events(self.session).await.expect("an answer");
        let read = |text: &str| Event::read(text.as_bytes()).expect("a stored event");
        events.iter().map(|logged| read(&logged.text)).collect()
    }

    /// Waits until the log has an event that is wanted, and gives it.
    pub async fn logged(&self, wanted: impl Fn(&Event) -> bool) -> Event {
        for _ in 0..200 {
            if let Some(event) = self.log().await.into_iter().find(|event| wanted(event)) {
                return event;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("it never came: {:?}", kinds(&self.log().await))
    }

    /// Judges all that was seen.
    pub async fn check_history(&self) -> History {
        load::quiet(&self.api, self.session).await;
        load::judge(&self.api, &[self.session]).await
    }
}

/// The types of events.
pub fn kinds(events: &[Event]) -> Vec<EventType> {
    events.iter().map(|event| event.body.kind()).collect()
}

/// The types of events, neighbours of one type as one: how many deltas there are is no promise.
pub fn shape(events: &[Event]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = kinds(events).iter().map(|kind| kind.name()).collect();
    names.dedup();
    names
}
