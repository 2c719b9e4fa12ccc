//! Checks what clients received against the log (I1, I2): every persisted event is in the log with
//! the same bytes, and the joined connections of a client have no gap and no duplicate.
//!
//! ```text
//! cursor ──► event, event, event ✂  resume at the last id ──► event, event ...
//!        └──────────── every wanted event of the log in between ─────────────┘
//! ```

use std::collections::BTreeSet;

use turnwire_event::{Event, Position};

use super::parse::{ParsedClient, ParsedLog, StreamItem, SubscriptionStream};
use super::violation::Violation;

/// The position of one client in the log.
struct DeliveryCursor<'a> {
    log: &'a ParsedLog<'a>,
    name: &'a str,
    /// Everything up to here was received; `None` before the first position.
    up_to: Option<Position>,
    seen: BTreeSet<Position>,
}

/// Checks everything that one client received.
pub(super) fn check(
    log: &ParsedLog<'_>,
    client: &ParsedClient<'_>,
    violations: &mut Vec<Violation>,
) {
    let mut reader = DeliveryCursor {
        log,
        name: client.name,
        up_to: None,
        seen: BTreeSet::new(),
    };
    for stream in &client.streams {
        reader.start_subscription(stream, violations);
        let mut before = reader.up_to;
        for item in &stream.items {
            match item {
                StreamItem::Served(up_to) => reader.advance(stream, *up_to, *up_to, violations),
                StreamItem::Event(_, text, event) => {
                    reader.event(stream, event, text, before, violations);
                    before = before.max(Some(event.id));
                }
            }
        }
    }
}

impl DeliveryCursor<'_> {
    /// Moves to the cursor or the snapshot of a new subscribe request.
    fn start_subscription(
        &mut self,
        stream: &SubscriptionStream<'_>,
        violations: &mut Vec<Violation>,
    ) {
        self.up_to = match (&stream.snapshot, stream.request.since) {
            (Some(snapshot), _) => Some(snapshot.at),
            (None, Some(since)) if !stream.request.snapshot => Some(since),
            (None, _) => None,
        };
        let after = self.up_to.filter(|_| stream.snapshot.is_none());
        let matching = after.map_or(0, |after| {
            let later = self.log.events.iter().filter(|e| e.id > after);
            later
                .filter(|e| stream.request.filter.matches(&e.head()))
                .count() as u64
        });
        if stream.replay_count > matching {
            violations.push(Violation::ReplayCount {
                client: self.name.to_owned(),
                connection: stream.connection,
                announced: stream.replay_count,
                matching,
            });
        }
    }

    fn event(
        &mut self,
        stream: &SubscriptionStream<'_>,
        event: &Event,
        text: &str,
        before: Option<Position>,
        violations: &mut Vec<Violation>,
    ) {
        let (client, connection, id) = (self.name.to_owned(), stream.connection, event.id);
        if !self.seen.insert(id) {
            violations.push(Violation::Twice {
                client,
                connection,
                id,
            });
            return;
        }
        if let Some(before) = before.filter(|&before| id <= before) {
            violations.push(Violation::NotRising {
                client,
                connection,
                before,
                after: id,
            });
            return;
        }
        let kind = event.body.kind();
        if !stream.request.filter.matches(&event.head()) {
            violations.push(Violation::Unwanted {
                client: client.clone(),
                connection,
                id,
                kind,
            });
        }
        if kind.is_persisted() {
            let session = self.log.id;
            match self.log.at(id) {
                None => violations.push(Violation::EventLost {
                    session,
                    client,
                    id,
                    text: text.to_owned(),
                }),
                Some((_, stored)) if stored != text => violations.push(Violation::EventChanged {
                    session,
                    client,
                    id,
                    seen: text.to_owned(),
                    stored: stored.to_owned(),
                }),
                Some(_) => {}
            }
        }
        self.advance(stream, id, id, violations);
    }

    /// Moves to `up_to`; reports every matching event before it that was not received.
    fn advance(
        &mut self,
        stream: &SubscriptionStream<'_>,
        up_to: Position,
        next: Position,
        violations: &mut Vec<Violation>,
    ) {
        if let Some(from) = self.up_to {
            for missed in self.log.between(from, up_to) {
                if stream.request.filter.matches(&missed.head()) && !self.seen.contains(&missed.id)
                {
                    violations.push(Violation::Missed {
                        client: self.name.to_owned(),
                        connection: stream.connection,
                        id: missed.id,
                        kind: missed.body.kind(),
                        next,
                    });
                }
            }
        }
        self.up_to = self.up_to.max(Some(up_to));
    }
}
