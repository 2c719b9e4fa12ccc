//! Workers on their parent's connection, put apart: what came of each is judged as if it had come
//! on a connection of its own. What only shows together is judged here: a worker's events stand
//! between the two events of its parent that say that it began and that it ended, and by its end
//! it was told whole.

use std::collections::{BTreeMap, BTreeSet};

use turnwire_event::{Body, Epoch, Event, MessageId, Position, Seq, SessionId};

use super::parse::{ParsedClient, ParsedLog, StreamItem, SubscriptionStream};
use super::record::SubscribeRecord;
use super::violation::Violation;

/// The cursor before a worker's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Splits every client that asked for workers into one for each session.
pub(super) fn apart<'a>(
    clients: Vec<ParsedClient<'a>>,
    logs: &BTreeMap<SessionId, ParsedLog<'a>>,
    found: &mut Vec<Violation>,
) -> Vec<ParsedClient<'a>> {
    let mut all = Vec::new();
    for client in clients {
        let (name, session) = (client.name, client.session);
        let mut by: BTreeMap<SessionId, Vec<SubscriptionStream<'a>>> = BTreeMap::new();
        for stretch in client.stretches {
            for (id, part) in parts(name, session, stretch, logs, found) {
                by.entry(id).or_default().push(part);
            }
        }
        all.extend(by.into_iter().map(|(session, stretches)| ParsedClient {
            name,
            session,
            stretches,
        }));
    }
    all
}

fn parts<'a>(
    name: &str,
    session: SessionId,
    mut whole: SubscriptionStream<'a>,
    logs: &BTreeMap<SessionId, ParsedLog<'a>>,
    found: &mut Vec<Violation>,
) -> BTreeMap<SessionId, SubscriptionStream<'a>> {
    let items = std::mem::take(&mut whole.items);
    let (asked, connection) = (whole.asked.clone(), whole.connection);
    if !asked.filter.include_worker_sessions {
        whole.items = items;
        return BTreeMap::from([(session, whole)]);
    }
    let worker = |since| SubscriptionStream {
        connection,
        asked: SubscribeRecord {
            since,
            snapshot: false,
            ..asked.clone()
        },
        replay_count: 0,
        snapshot: None,
        items: Vec::new(),
    };
    let named = asked
        .workers
        .iter()
        .map(|(id, at)| (*id, worker(Some(*at))));
    let mut parts: BTreeMap<_, _> = named.collect();
    parts.insert(session, whole);
    let mut ended = BTreeSet::new();
    for item in items {
        let StreamItem::Event(_, _, event) = &item else {
            parts
                .entry(session)
                .and_modify(|part| part.items.push(item));
            continue;
        };
        let mut outside = |worker, id, place| {
            found.push(Violation::WorkerOutside {
                client: name.to_owned(),
                connection,
                worker,
                id,
                place,
            });
        };
        if ended.contains(&event.session_id) {
            outside(event.session_id, event.id, "after its end");
        }
        match ends(event) {
            Some((id, DelegateEdge::Began)) => {
                let part = parts.entry(id).or_insert_with(|| worker(Some(START)));
                if let Some(StreamItem::Event(_, _, early)) = part.items.first() {
                    outside(id, early.id, "before its start");
                }
            }
            Some((id, DelegateEdge::Ended)) => {
                ended.insert(id);
                let end = logs.get(&id).and_then(terminal);
                if let (Some(part), Some(end)) = (parts.get_mut(&id), end) {
                    part.items.push(StreamItem::Served(end));
                }
            }
            None => {}
        }
        // One that was neither named nor begun here was joined where it stood.
        let part = parts
            .entry(event.session_id)
            .or_insert_with(|| worker(None));
        part.items.push(item);
    }
    for (id, part) in &mut parts {
        if *id != session && part.asked.since.is_some() {
            part.replay_count = replayed(part, logs.get(id));
        }
    }
    parts
}

enum DelegateEdge {
    Began,
    Ended,
}

fn ends(event: &Event) -> Option<(SessionId, DelegateEdge)> {
    match &event.body {
        Body::DelegateStarted(start) => Some((start.worker_session_id, DelegateEdge::Began)),
        Body::DelegateCompleted(end) => Some((end.worker_session_id, DelegateEdge::Ended)),
        Body::DelegateFailed(end) => Some((end.worker_session_id, DelegateEdge::Ended)),
        _ => None,
    }
}

/// Where a worker's turn ended.
fn terminal(log: &ParsedLog<'_>) -> Option<Position> {
    let mut ends = log.events.iter().filter(|e| e.body.kind().is_terminal());
    ends.next().map(|event| event.id)
}

/// How many persisted events of a worker were replayed, as far as it shows: up to the last message
/// that came without its words. The acknowledgement does not say it of workers.
fn replayed(part: &SubscriptionStream<'_>, log: Option<&ParsedLog<'_>>) -> u64 {
    let (mut persisted, mut count) = (0, 0);
    // The message that has begun and had no word yet, and how much was stored before it.
    let mut silent = None;
    for item in &part.items {
        let StreamItem::Event(_, _, event) = item else {
            continue;
        };
        persisted += u64::from(event.body.kind().is_persisted());
        match &event.body {
            Body::MessageStart(start) => silent = Some((start.message_id, persisted)),
            // The end of its call comes with it, unless the line was cut in between.
            Body::MessageComplete(_) if silent.take().is_some() => count = persisted + 1,
            body if !body.kind().is_persisted() => silent = None,
            _ => {}
        }
    }
    match silent {
        // Cut behind something stored that stands between its two ends: the end of its call was to
        // come too.
        Some((message, before)) if persisted > before => {
            log.map_or(count, |log| upto_the_end(part, log, message).max(count))
        }
        _ => count,
    }
}

/// How many events a worker's log has from the cursor to the end of a message's call.
fn upto_the_end(part: &SubscriptionStream<'_>, log: &ParsedLog<'_>, message: MessageId) -> u64 {
    let after = log
        .events
        .iter()
        .filter(|e| Some(e.id) > part.asked.since && part.asked.filter.matches(&e.head()));
    let place = after.zip(1u64..).find(|(event, _)| match &event.body {
        Body::LlmCallCompleted(call) => call.message_id == message,
        Body::LlmCallFailed(call) => call.message_id == Some(message),
        _ => false,
    });
    place.map_or(0, |(_, place)| place)
}
