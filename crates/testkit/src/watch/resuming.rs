//! A client whose connection is cut repeatedly after a number of bytes, anywhere in a frame. It
//! resumes with the id of the last complete event.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::{Body, Epoch, Event, MessageId, Position, Seq, SessionId};

use super::client::{WatchClient, WatchEnd, WatchFrame};
use super::options::SubscribeOptions;
use crate::api::ApiClient;
use crate::history::FaultKind;

/// The cursor before a session's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Where a [`ResumingReader`] was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPlace {
    Between,
    /// Inside a message: after its start and before its end.
    Inside,
}

/// A client that reads one session over many connections.
#[derive(Debug)]
pub struct ResumingReader {
    api: ApiClient,
    name: String,
    session: SessionId,
    filter: Value,
    last: Position,
    /// The last position of each running worker; `None` without workers.
    workers: Option<BTreeMap<SessionId, Position>>,
    open: Option<MessageId>,
    client: Option<WatchClient>,
}

impl ResumingReader {
    /// A reader from the session's first event on.
    pub fn new(api: &ApiClient, name: &str, session: SessionId) -> Self {
        Self {
            api: api.clone(),
            name: name.to_owned(),
            session,
            filter: "preset:full".into(),
            last: START,
            workers: None,
            open: None,
            client: None,
        }
    }

    /// Replaces the filter of the subscribe requests.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<Value>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Includes the events of the session's workers.
    #[must_use]
    pub fn with_workers(mut self) -> Self {
        self.filter = json!({"include_worker_sessions": true});
        self.workers = Some(BTreeMap::new());
        self
    }

    /// The session of this reader.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The id of the last received event.
    pub fn last(&self) -> Position {
        self.last
    }

    /// Whether the last event is inside a message.
    pub fn cut_place(&self) -> CutPlace {
        if self.open.is_some() {
            CutPlace::Inside
        } else {
            CutPlace::Between
        }
    }

    /// Connects if disconnected: with the cursor, or with a new snapshot.
    pub async fn resume(&mut self, snapshot: bool) -> Result<(), WatchEnd> {
        if self.client.is_some() {
            return Ok(());
        }
        let lost = |why: &dyn std::fmt::Display| WatchEnd::Cut(why.to_string());
        let mut client = WatchClient::connect(&self.api, &self.name, self.session)
            .await
            .map_err(|why| lost(&why))?;
        let ask = if snapshot {
            SubscribeOptions::snapshot()
        } else {
            SubscribeOptions::since(self.last).workers(self.workers.clone().unwrap_or_default())
        };
        client.subscribe(&ask.filter(self.filter.clone())).await?;
        self.client = Some(client);
        Ok(())
    }

    /// Reads one frame; disconnects when the connection ends.
    pub async fn step(&mut self) -> Result<WatchFrame, WatchEnd> {
        self.resume(false).await?;
        let client = self.client.as_mut().expect("just connected");
        match client.next().await {
            Ok(seen) => {
                self.apply_frame(&seen);
                Ok(seen)
            }
            Err(end) => {
                self.client = None;
                Err(end)
            }
        }
    }

    fn apply_frame(&mut self, seen: &WatchFrame) {
        match seen {
            WatchFrame::Event(apply_event) => self.apply_event(apply_event),
            WatchFrame::Frame(frame) => {
                assert_ne!(
                    frame["type"], "subscribe_error",
                    "{} at {}: {frame}",
                    self.name, self.last
                );
                let at = frame["snapshot_at_event_id"]
                    .as_str()
                    .and_then(|id| id.parse().ok());
                if let Some(at) = at {
                    self.last = at;
                    let mut messages = frame["messages"].as_array().into_iter().flatten();
                    let open = messages.rfind(|m| m["status"] == "in_progress");
                    self.open = open.and_then(|m| m["id"].as_str()?.parse().ok());
                }
            }
        }
    }

    fn apply_event(&mut self, apply_event: &Event) {
        if apply_event.session_id == self.session {
            self.last = apply_event.id;
        }
        if let Some(workers) = &mut self.workers {
            if apply_event.session_id != self.session {
                workers.insert(apply_event.session_id, apply_event.id);
            }
            match &apply_event.body {
                Body::DelegateStarted(start) => {
                    workers.entry(start.worker_session_id).or_insert(START);
                }
                Body::DelegateCompleted(end) => drop(workers.remove(&end.worker_session_id)),
                Body::DelegateFailed(end) => drop(workers.remove(&end.worker_session_id)),
                _ => {}
            }
        }
        match &apply_event.body {
            Body::MessageStart(start) => self.open = Some(start.message_id),
            Body::MessageComplete(_) | Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                self.open = None;
            }
            _ => {}
        }
    }

    /// Reads `bytes` more bytes, then cuts the connection and returns where. `None` if the
    /// connection ended before, or nothing arrived within the deadline.
    pub async fn cut_after(&mut self, bytes: u64, deadline: Duration) -> Option<CutPlace> {
        if self.resume(false).await.is_err() {
            return None;
        }
        if let Some(client) = &mut self.client {
            client.end_after(bytes);
            client.deadline = deadline;
        }
        let was_cut = loop {
            let client = self.client.as_mut()?;
            match client.next().await {
                Ok(seen) => self.apply_frame(&seen),
                Err(_) => break client.was_cut(),
            }
        };
        self.drop_connection();
        was_cut.then(|| self.cut_place())
    }

    /// Closes the connection without a close frame.
    pub fn drop_connection(&mut self) {
        if self.client.take().is_some() {
            self.api.journal().fault(FaultKind::Cut);
        }
    }

    /// Reads up to a position, over as many connections as needed.
    pub async fn finish(&mut self, up_to: Position) {
        let started = std::time::Instant::now();
        while self.last < up_to {
            if let Err(end) = self.step().await {
                assert!(
                    started.elapsed() < Duration::from_secs(60),
                    "{} is at {} and does not reach {up_to}: {end}",
                    self.name,
                    self.last
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
