//! What clients were sent against the log (I1, I2): every persisted event a client saw is in
//! the log with the same bytes, and its connections put together have no gap and no repetition.
//!
//! ```text
//! cursor ──► event, event, event ✂  resume at the last id ──► event, event ...
//!        └──────────── every wanted event of the log in between ─────────────┘
//! ```

use std::collections::BTreeSet;

use turnwire_event::{Event, Position};

use super::parse::{ParsedClient, ParsedLog, StreamItem, SubscriptionStream};
use super::violation::Violation;

/// A client's place in the log.
struct DeliveryCursor<'a> {
    log: &'a ParsedLog<'a>,
    name: &'a str,
    /// Up to where it has been served without a gap; none while nothing is known.
    upto: Option<Position>,
    seen: BTreeSet<Position>,
}

/// Walks all that one client was sent.
pub(super) fn check(log: &ParsedLog<'_>, client: &ParsedClient<'_>, found: &mut Vec<Violation>) {
    let mut reader = DeliveryCursor {
        log,
        name: client.name,
        upto: None,
        seen: BTreeSet::new(),
    };
    for stretch in &client.stretches {
        reader.begin(stretch, found);
        let mut before = reader.upto;
        for item in &stretch.items {
            match item {
                StreamItem::Served(upto) => reader.serve(stretch, *upto, *upto, found),
                StreamItem::Event(_, text, event) => {
                    reader.event(stretch, event, text, before, found);
                    before = before.max(Some(event.id));
                }
            }
        }
    }
}

impl DeliveryCursor<'_> {
    /// A new subscribe moves the reader to its cursor or to its snapshot.
    fn begin(&mut self, stretch: &SubscriptionStream<'_>, found: &mut Vec<Violation>) {
        self.upto = match (&stretch.snapshot, stretch.asked.since) {
            (Some(snapshot), _) => Some(snapshot.at),
            (None, Some(since)) if !stretch.asked.snapshot => Some(since),
            (None, _) => None,
        };
        let after = self.upto.filter(|_| stretch.snapshot.is_none());
        let matching = after.map_or(0, |after| {
            let later = self.log.events.iter().filter(|e| e.id > after);
            later
                .filter(|e| stretch.asked.filter.matches(&e.head()))
                .count() as u64
        });
        if stretch.replay_count > matching {
            found.push(Violation::ReplayCount {
                client: self.name.to_owned(),
                connection: stretch.connection,
                told: stretch.replay_count,
                matching,
            });
        }
    }

    fn event(
        &mut self,
        stretch: &SubscriptionStream<'_>,
        event: &Event,
        text: &str,
        before: Option<Position>,
        found: &mut Vec<Violation>,
    ) {
        let (client, connection, id) = (self.name.to_owned(), stretch.connection, event.id);
        if !self.seen.insert(id) {
            found.push(Violation::Twice {
                client,
                connection,
                id,
            });
            return;
        }
        if let Some(before) = before.filter(|&before| id <= before) {
            found.push(Violation::NotRising {
                client,
                connection,
                before,
                after: id,
            });
            return;
        }
        let kind = event.body.kind();
        if !stretch.asked.filter.matches(&event.head()) {
            found.push(Violation::Unwanted {
                client: client.clone(),
                connection,
                id,
                kind,
            });
        }
        if kind.is_persisted() {
            let session = self.log.id;
            match self.log.at(id) {
                None => found.push(Violation::EventLost {
                    session,
                    client,
                    id,
                    text: text.to_owned(),
                }),
                Some((_, stored)) if stored != text => found.push(Violation::EventChanged {
                    session,
                    client,
                    id,
                    seen: text.to_owned(),
                    stored: stored.to_owned(),
                }),
                Some(_) => {}
            }
        }
        self.serve(stretch, id, id, found);
    }

    /// The reader has been served up to `upto`: everything wanted before it must have come.
    fn serve(
        &mut self,
        stretch: &SubscriptionStream<'_>,
        upto: Position,
        next: Position,
        found: &mut Vec<Violation>,
    ) {
        if let Some(from) = self.upto {
            for missed in self.log.between(from, upto) {
                if stretch.asked.filter.matches(&missed.head()) && !self.seen.contains(&missed.id) {
                    found.push(Violation::Missed {
                        client: self.name.to_owned(),
                        connection: stretch.connection,
                        id: missed.id,
                        kind: missed.body.kind(),
                        next,
                    });
                }
            }
        }
        self.upto = self.upto.max(Some(upto));
    }
}
