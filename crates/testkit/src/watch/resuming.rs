//! A reader whose line is cut again and again: after a number of bytes, wherever that falls. It
//! comes back with the id of the last event it got whole, as the contract says.

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

/// Where a reader was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPlace {
    Between,
    /// Inside a message: it has seen its start and not its end.
    Inside,
}

/// A client that goes on over many connections.
#[derive(Debug)]
pub struct ResumingReader {
    api: ApiClient,
    name: String,
    session: SessionId,
    filter: Value,
    last: Position,
    /// Where its workers stand, from their starts to their ends, if it wants them.
    workers: Option<BTreeMap<SessionId, Position>>,
    open: Option<MessageId>,
    client: Option<WatchClient>,
}

impl ResumingReader {
    /// A reader that begins with the session's first event.
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

    /// The same through a filter.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<Value>) -> Self {
        self.filter = filter.into();
        self
    }

    /// The same with the session's workers.
    #[must_use]
    pub fn with_workers(mut self) -> Self {
        self.filter = json!({"include_worker_sessions": true});
        self.workers = Some(BTreeMap::new());
        self
    }

    /// The session it reads.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The last id it got.
    pub fn last(&self) -> Position {
        self.last
    }

    /// Whether it is inside a message.
    pub fn place(&self) -> CutPlace {
        if self.open.is_some() {
            CutPlace::Inside
        } else {
            CutPlace::Between
        }
    }

    /// Connects if it is not connected: with its cursor, or anew with a snapshot.
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

    /// Reads one frame; the reader is disconnected when the line is gone.
    pub async fn step(&mut self) -> Result<WatchFrame, WatchEnd> {
        self.resume(false).await?;
        let client = self.client.as_mut().expect("just connected");
        match client.next().await {
            Ok(seen) => {
                self.take(&seen);
                Ok(seen)
            }
            Err(end) => {
                self.client = None;
                Err(end)
            }
        }
    }

    fn take(&mut self, seen: &WatchFrame) {
        match seen {
            WatchFrame::Event(event) => self.event(event),
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

    fn event(&mut self, event: &Event) {
        if event.session_id == self.session {
            self.last = event.id;
        }
        if let Some(workers) = &mut self.workers {
            if event.session_id != self.session {
                workers.insert(event.session_id, event.id);
            }
            match &event.body {
                Body::DelegateStarted(start) => {
                    workers.entry(start.worker_session_id).or_insert(START);
                }
                Body::DelegateCompleted(end) => drop(workers.remove(&end.worker_session_id)),
                Body::DelegateFailed(end) => drop(workers.remove(&end.worker_session_id)),
                _ => {}
            }
        }
        match &event.body {
            Body::MessageStart(start) => self.open = Some(start.message_id),
            Body::MessageComplete(_) | Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                self.open = None;
            }
            _ => {}
        }
    }

    /// Reads until `bytes` more have come over the line, then is cut; says where. None if the
    /// line ended otherwise, or nothing more came for a while.
    pub async fn cut_after(&mut self, bytes: u64, patience: Duration) -> Option<CutPlace> {
        if self.resume(false).await.is_err() {
            return None;
        }
        if let Some(client) = &mut self.client {
            client.end_after(bytes);
            client.patience = patience;
        }
        let spent = loop {
            let client = self.client.as_mut()?;
            match client.next().await {
                Ok(seen) => self.take(&seen),
                Err(_) => break client.was_cut(),
            }
        };
        self.drop_line();
        spent.then(|| self.place())
    }

    /// Drops the line as it is.
    pub fn drop_line(&mut self) {
        if self.client.take().is_some() {
            self.api.journal().fault(FaultKind::Cut);
        }
    }

    /// Reads until it has been served up to a position, over as many connections as it takes.
    pub async fn finish(&mut self, upto: Position) {
        let begun = std::time::Instant::now();
        while self.last < upto {
            if let Err(end) = self.step().await {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "{} stands at {} and is not served up to {upto}: {end}",
                    self.name,
                    self.last
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
