//! Parses a [`History`]: frames and rows become events and messages, the connections of one client
//! are joined and split at each acknowledged subscribe. A parse error is a violation.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::{Event, Message, Position, SessionId};

use super::record::{
    ConnectionEntry, ConnectionRecord, History, ReceivedFrame, SessionLog, SubscribeRecord,
};
use super::violation::Violation;

/// A session's log and rows, parsed.
#[derive(Debug)]
pub(super) struct ParsedLog<'a> {
    pub(super) id: SessionId,
    pub(super) raw: &'a SessionLog,
    pub(super) events: Vec<Event>,
    pub(super) messages: Vec<Message>,
}

impl ParsedLog<'_> {
    /// The stored event at a position, and its bytes.
    pub(super) fn at(&self, id: Position) -> Option<(&Event, &str)> {
        let index = self.events.partition_point(|event| event.id < id);
        let event = self.events.get(index)?;
        (event.id == id).then(|| (event, self.raw.events[index].text.as_str()))
    }

    /// The stored events after `from`, up to and with `up_to`.
    pub(super) fn between(&self, from: Position, up_to: Position) -> impl Iterator<Item = &Event> {
        let start = self.events.partition_point(|event| event.id <= from);
        self.events[start..]
            .iter()
            .take_while(move |e| e.id <= up_to)
    }
}

/// One reader of one session over all its connections.
#[derive(Debug)]
pub(super) struct ParsedClient<'a> {
    pub(super) name: &'a str,
    pub(super) session: SessionId,
    pub(super) streams: Vec<SubscriptionStream<'a>>,
}

/// Everything received after one acknowledged subscribe request.
#[derive(Debug)]
pub(super) struct SubscriptionStream<'a> {
    pub(super) connection: usize,
    pub(super) request: SubscribeRecord,
    pub(super) replay_count: u64,
    pub(super) snapshot: Option<ParsedSnapshot>,
    pub(super) items: Vec<StreamItem<'a>>,
}

/// One entry of a [`SubscriptionStream`].
#[derive(Debug)]
pub(super) enum StreamItem<'a> {
    /// Time of receipt, bytes and the parsed event.
    Event(Duration, &'a str, Box<Event>),
    /// A position up to which the connection has been served (`ping.position`).
    Served(Position),
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedSnapshot {
    #[serde(rename = "snapshot_at_event_id")]
    pub(super) at: Position,
    pub(super) session: Value,
    pub(super) messages: Vec<Message>,
    /// The open work; `None` in the histories of older servers.
    pub(super) open: Option<Value>,
    pub(super) last_turn: Option<Value>,
}

#[derive(Deserialize)]
struct FrameHead<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    replay_event_count: Option<u64>,
    position: Option<Position>,
}

pub(super) fn logs<'a>(
    history: &'a History,
    violations: &mut Vec<Violation>,
) -> BTreeMap<SessionId, ParsedLog<'a>> {
    let mut logs = BTreeMap::new();
    for raw in &history.sessions {
        let mut events = Vec::with_capacity(raw.events.len());
        for logged in &raw.events {
            match Event::read(logged.text.as_bytes()) {
                Ok(event) => events.push(event),
                Err(reason) => violations.push(unreadable("stored event", &reason, &logged.text)),
            }
        }
        let mut messages = Vec::with_capacity(raw.messages.len());
        for row in &raw.messages {
            match Message::deserialize(row) {
                Ok(message) => messages.push(message),
                Err(reason) => {
                    violations.push(unreadable("message row", &reason, &row.to_string()))
                }
            }
        }
        logs.insert(
            raw.id,
            ParsedLog {
                id: raw.id,
                raw,
                events,
                messages,
            },
        );
    }
    logs
}

/// Joins the connections of each client.
pub(super) fn clients<'a>(
    history: &'a History,
    violations: &mut Vec<Violation>,
) -> Vec<ParsedClient<'a>> {
    let mut clients: BTreeMap<(&str, SessionId), ParsedClient<'a>> = BTreeMap::new();
    for (number, connection) in history.connections.iter().enumerate() {
        let client = clients
            .entry((&connection.client, connection.session))
            .or_insert_with(|| ParsedClient {
                name: &connection.client,
                session: connection.session,
                streams: Vec::new(),
            });
        read_connection(number, connection, client, violations);
    }
    clients.into_values().collect()
}

fn read_connection<'a>(
    number: usize,
    connection: &'a ConnectionRecord,
    client: &mut ParsedClient<'a>,
    violations: &mut Vec<Violation>,
) {
    let mut pending: VecDeque<&'a SubscribeRecord> = VecDeque::new();
    let mut open: Option<SubscriptionStream<'a>> = None;
    for line in &connection.lines {
        let frame = match line {
            ConnectionEntry::Subscribed(subscribe) => {
                pending.push_back(subscribe);
                continue;
            }
            ConnectionEntry::Received(frame) => frame,
        };
        let head: FrameHead<'a> = match serde_json::from_str(&frame.text) {
            Ok(head) => head,
            Err(reason) => {
                violations.push(unreadable("frame", &reason, &frame.text));
                continue;
            }
        };
        match head.kind {
            "subscribe_ack" => {
                client.streams.extend(open.take());
                open = pending.pop_front().map(|request| SubscriptionStream {
                    connection: number,
                    request: request.clone(),
                    replay_count: head.replay_event_count.unwrap_or(u64::MAX),
                    snapshot: None,
                    items: Vec::new(),
                });
            }
            "subscribe_error" => {
                pending.pop_front();
            }
            _ => read_frame(frame, &head, open.as_mut(), violations),
        }
    }
    client.streams.extend(open);
}

fn read_frame<'a>(
    frame: &'a ReceivedFrame,
    head: &FrameHead<'a>,
    open: Option<&mut SubscriptionStream<'a>>,
    violations: &mut Vec<Violation>,
) {
    let Some(stream) = open else {
        // Before the first acknowledgement only replies and heartbeats are valid.
        if matches!(head.kind, "event" | "snapshot") {
            violations.push(unreadable(
                "frame",
                &"no subscribe was acknowledged",
                &frame.text,
            ));
        }
        return;
    };
    match (head.kind, head.event) {
        ("event", Some(raw)) => match Event::read(raw.get().as_bytes()) {
            Ok(event) => stream
                .items
                .push(StreamItem::Event(frame.at, raw.get(), Box::new(event))),
            Err(reason) => violations.push(unreadable("event", &reason, &frame.text)),
        },
        ("snapshot", _) => match serde_json::from_str(&frame.text) {
            Ok(snapshot) if stream.items.is_empty() => stream.snapshot = Some(snapshot),
            Ok(_) => violations.push(unreadable("frame", &"a snapshot after events", &frame.text)),
            Err(reason) => violations.push(unreadable("snapshot", &reason, &frame.text)),
        },
        ("ping", _) => stream.items.extend(head.position.map(StreamItem::Served)),
        ("pong" | "cancel_ack" | "cancel_error", _) => {}
        _ => violations.push(unreadable("frame", &"unknown frame type", &frame.text)),
    }
}

fn unreadable(subject: &str, reason: &dyn std::fmt::Display, text: &str) -> Violation {
    Violation::Unreadable {
        subject: subject.to_owned(),
        reason: reason.to_string(),
        text: text.chars().take(400).collect(),
    }
}
