//! Splits the worker sessions out of their parent's connection, so that each is checked as if it had
//! a connection of its own. Checked here: a worker's events come between `delegate.started` and
//! `delegate.completed` or `delegate.failed` of its parent, and all of them have come by
//! its end.

use std::collections::{BTreeMap, BTreeSet};

use turnwire_event::{Body, Epoch, Event, MessageId, Position, Seq, SessionId};

use super::parse::{ParsedClient, ParsedLog, StreamItem, SubscriptionStream};
use super::record::SubscribeRecord;
use super::violation::Violation;

/// The cursor before a worker's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Splits every client that subscribed to workers into one [`ParsedClient`] per session.
pub(super) fn split_workers<'a>(
    clients: Vec<ParsedClient<'a>>,
    logs: &BTreeMap<SessionId, ParsedLog<'a>>,
    violations: &mut Vec<Violation>,
) -> Vec<ParsedClient<'a>> {
    let mut all = Vec::new();
    for client in clients {
        let (name, session) = (client.name, client.session);
        let mut by_session: BTreeMap<SessionId, Vec<SubscriptionStream<'a>>> = BTreeMap::new();
        for stream in client.streams {
            for (id, part) in split_stream(name, session, stream, logs, violations) {
                by_session.entry(id).or_default().push(part);
            }
        }
        all.extend(
            by_session
                .into_iter()
                .map(|(session, streams)| ParsedClient {
                    name,
                    session,
                    streams,
                }),
        );
    }
    all
}

fn split_stream<'a>(
    name: &str,
    session: SessionId,
    mut stream: SubscriptionStream<'a>,
    logs: &BTreeMap<SessionId, ParsedLog<'a>>,
    violations: &mut Vec<Violation>,
) -> BTreeMap<SessionId, SubscriptionStream<'a>> {
    let items = std::mem::take(&mut stream.items);
    let (request, connection) = (stream.request.clone(), stream.connection);
    if !request.filter.include_worker_sessions {
        stream.items = items;
        return BTreeMap::from([(session, stream)]);
    }
    let worker = |since| SubscriptionStream {
        connection,
        request: SubscribeRecord {
            since,
            snapshot: false,
            ..request.clone()
        },
        replay_count: 0,
        snapshot: None,
        items: Vec::new(),
    };
    let named = request
        .workers
        .iter()
        .map(|(id, at)| (*id, worker(Some(*at))));
    let mut split_stream: BTreeMap<_, _> = named.collect();
    split_stream.insert(session, stream);
    let mut ended = BTreeSet::new();
    for item in items {
        let StreamItem::Event(_, _, event) = &item else {
            split_stream
                .entry(session)
                .and_modify(|part| part.items.push(item));
            continue;
        };
        let mut report_outside = |worker, id, place| {
            violations.push(Violation::WorkerOutside {
                client: name.to_owned(),
                connection,
                worker,
                id,
                place,
            });
        };
        if ended.contains(&event.session_id) {
            report_outside(event.session_id, event.id, "after its end");
        }
        match delegate_edge(event) {
            Some((id, DelegateEdge::Started)) => {
                let part = split_stream
                    .entry(id)
                    .or_insert_with(|| worker(Some(START)));
                if let Some(StreamItem::Event(_, _, early)) = part.items.first() {
                    report_outside(id, early.id, "before its start");
                }
            }
            Some((id, DelegateEdge::Ended)) => {
                ended.insert(id);
                let end = logs.get(&id).and_then(first_terminal);
                if let (Some(part), Some(end)) = (split_stream.get_mut(&id), end) {
                    part.items.push(StreamItem::Served(end));
                }
            }
            None => {}
        }
        // No cursor and no start event: the client joined a running worker.
        let part = split_stream
            .entry(event.session_id)
            .or_insert_with(|| worker(None));
        part.items.push(item);
    }
    for (id, part) in &mut split_stream {
        if *id != session && part.request.since.is_some() {
            part.replay_count = replayed_count(part, logs.get(id));
        }
    }
    split_stream
}

enum DelegateEdge {
    Started,
    Ended,
}

fn delegate_edge(event: &Event) -> Option<(SessionId, DelegateEdge)> {
    match &event.body {
        Body::DelegateStarted(start) => Some((start.worker_session_id, DelegateEdge::Started)),
        Body::DelegateCompleted(end) => Some((end.worker_session_id, DelegateEdge::Ended)),
        Body::DelegateFailed(end) => Some((end.worker_session_id, DelegateEdge::Ended)),
        _ => None,
    }
}

/// The position of a worker's terminal.
fn first_terminal(log: &ParsedLog<'_>) -> Option<Position> {
    let mut delegate_edge = log.events.iter().filter(|e| e.body.kind().is_terminal());
    delegate_edge.next().map(|event| event.id)
}

/// The number of replayed events of a worker, as far as visible: up to the last message whose
/// deltas are missing. The acknowledgement has no count for workers.
fn replayed_count(part: &SubscriptionStream<'_>, log: Option<&ParsedLog<'_>>) -> u64 {
    let (mut persisted, mut count) = (0, 0);
    // The started message without a delta yet, and the number of persisted events before it.
    let mut silent = None;
    for item in &part.items {
        let StreamItem::Event(_, _, event) = item else {
            continue;
        };
        persisted += u64::from(event.body.kind().is_persisted());
        match &event.body {
            Body::MessageStart(start) => silent = Some((start.message_id, persisted)),
            // The end of its call follows, unless the connection was cut in between.
            Body::MessageComplete(_) if silent.take().is_some() => count = persisted + 1,
            body if !body.kind().is_persisted() => silent = None,
            _ => {}
        }
    }
    match silent {
        // Cut after a persisted event between the message's start and end: the end of its call was
        // due too.
        Some((message, before)) if persisted > before => log.map_or(count, |log| {
            count_to_call_end(part, log, message).max(count)
        }),
        _ => count,
    }
}

/// The number of matching events in a worker's log from the cursor to the end of a message's call.
fn count_to_call_end(
    part: &SubscriptionStream<'_>,
    log: &ParsedLog<'_>,
    message: MessageId,
) -> u64 {
    let after = log
        .events
        .iter()
        .filter(|e| Some(e.id) > part.request.since && part.request.filter.matches(&e.head()));
    let place = after.zip(1u64..).find(|(event, _)| match &event.body {
        Body::LlmCallCompleted(call) => call.message_id == message,
        Body::LlmCallFailed(call) => call.message_id == Some(message),
        _ => false,
    });
    place.map_or(0, |(_, place)| place)
}
