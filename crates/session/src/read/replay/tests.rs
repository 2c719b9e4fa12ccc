//! The switch of a reader from store to ring, in every schedule.
//!
//! The steps of a writer (commit, publish) and of a reader (look, read a chunk, read the ring)
//! are each atomic: one lock or one query. So all interleavings of them on the real store, ring
//! and catch-up are all behaviours that threads could show. For each schedule and each cursor, the
//! events of the client are compared with those of an uninterrupted client.

mod stage;

use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::body::llm::{CallCompleted, CallStarted};
use turnwire_event::body::stream::{MessageStart, TextDelta};
use turnwire_event::body::turn::{BoundVersions, TurnCompleted, TurnStarted};
use turnwire_event::code::{CallPurpose, TurnKind, TurnStatus};
use turnwire_event::fold::OpenTurn;
use turnwire_event::row::RowChange;
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, EpisodeId, Event, EventType, MessageId, Role, SessionId,
    StopReason, Timestamp, TokenUsage, TurnId, Ulid,
};
use turnwire_hub::RingRead;

use super::*;
use stage::{ReplayStage, WriteStep, at, services};

fn feedback() -> Body {
    Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: None,
        rating: "1".into(),
        comment: None,
    })
}

/// The steps of a turn whose message is interrupted by a persisted event.
fn script(session: SessionId) -> Vec<WriteStep> {
    let (turn, message_id) = (TurnId(session.0), MessageId(session.0));
    let text = |text: &str| {
        Body::TextDelta(TextDelta {
            message_id,
            content_block_index: 0,
            text: text.into(),
        })
    };
    let time = Timestamp::from_millis(5_000);
    let event = |id: Position, body: Body| Event {
        response_id: None,
        id,
        session_id: session,
        turn_id: (body.kind() != EventType::FeedbackRecorded).then_some(turn),
        actor: Actor::ORCHESTRATOR,
        timestamp: time,
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    };
    let started = Body::TurnStarted(TurnStarted {
        relayed_to: None,
        answers: Vec::new(),
        resumes: None,
        user_message_id: MessageId(Ulid(9)),
        input: vec![ContentBlock::text("hi")],
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EpisodeId(Ulid(1)),
        locale: "en".into(),
        wire_version: None,
        history_omitted: 0,
        versions: BoundVersions::default(),
    });
    let call = Body::LlmCallStarted(CallStarted {
        call_id: CallId(Ulid(1)),
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: true,
    });
    let begin = Body::MessageStart(MessageStart {
        message_id,
        role: Role::Assistant,
        model: "m".into(),
    });
    let streamed = [
        event(at(2, 1), begin),
        event(at(2, 2), text("one ")),
        event(at(2, 3), text("two ")),
        event(at(3, 1), text("three ")),
        event(at(3, 2), text("four")),
    ];
    let mut open = OpenTurn::new(turn);
    streamed
        .iter()
        .for_each(|e| open.apply(e.id, e.timestamp, &e.actor, &e.body));
    let fold = open.message.expect("a message");
    let complete = fold.complete(StopReason::EndTurn, TokenUsage::default());
    let row = RowChange::MessageFinished(turn, Box::new(fold.finished(&complete)));
    let done = event(at(3, 3), Body::MessageComplete(complete));
    let call_done = event(
        at(4, 0),
        Body::LlmCallCompleted(CallCompleted {
            call_id: CallId(Ulid(1)),
            message_id,
            content_sha256: String::new(),
            stop_reason: StopReason::EndTurn,
            usage: TokenUsage::default(),
        }),
    );
    let usage = TokenUsage::default();
    let end = event(
        at(5, 0),
        Body::TurnCompleted(TurnCompleted {
            status: TurnStatus::Ok,
            usage,
            error: None,
            reason: None,
            partial: None,
            paused: None,
        }),
    );
    let persisted = |event: Event| {
        [
            WriteStep::Commit(vec![event.clone()], Vec::new()),
            WriteStep::Publish(vec![event]),
        ]
    };
    let mut steps = Vec::new();
    steps.extend(persisted(event(at(1, 0), started)));
    steps.extend(persisted(event(at(2, 0), call)));
    steps.extend(
        streamed[..3]
            .iter()
            .map(|e| WriteStep::Publish(vec![e.clone()])),
    );
    steps.extend(persisted(event(at(3, 0), feedback())));
    steps.extend(
        streamed[3..]
            .iter()
            .map(|e| WriteStep::Publish(vec![e.clone()])),
    );
    steps.push(WriteStep::Commit(
        vec![call_done.clone()],
        vec![(at(3, 3), row)],
    ));
    steps.push(WriteStep::Publish(vec![done, call_done]));
    steps.extend(persisted(end));
    steps
}

/// The events of a client with cursor `since` that looks, reads its chunks and reads the ring after
/// the given numbers of writer steps.
async fn client(
    stage: &mut ReplayStage,
    steps: &[WriteStep],
    since: Position,
    moments: [usize; 3],
    chunk: usize,
) -> Option<Vec<Event>> {
    let mut done = 0;
    let mut until = |stage: &mut ReplayStage, moment: usize| {
        steps[done..moment].iter().for_each(|step| stage.step(step));
        done = moment;
    };
    until(stage, moments[0]);
    let mut catch_up = stage
        .live
        .catch_up(since, &EventFilter::full(), FinishedReplay::Ends, u64::MAX)
        .await
        .ok()?;
    catch_up.chunk = chunk;
    let mut received = Vec::new();
    until(stage, moments[1]);
    while let Some(chunk) = catch_up.next(None).await.expect("a chunk") {
        received.extend(
            chunk
                .into_iter()
                .map(|(_, bytes)| Event::read(&bytes).expect("an event")),
        );
    }
    let mut cursor = catch_up.cursor;
    for moment in [moments[2], steps.len()] {
        until(stage, moment);
        let plain = |entry: &turnwire_hub::RingEntry, out: &mut Vec<u8>| {
            out.extend_from_slice(&[&entry.bytes[..], b"\n"].concat());
            0
        };
        let mut take = |run: turnwire_hub::FrameRun<'_>| {
            run.select(&EventFilter::full(), |bytes, _| {
                let lines = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty());
                received.extend(lines.map(|line| Event::read(line).expect("an event")));
            });
        };
        while let RingRead::Advanced(after) = stage.live.ring.read(0, cursor, 2, &plain, &mut take)
        {
            cursor = after;
        }
    }
    Some(received)
}

/// Every event of a catch-up that passes the filter, read with and without the filter.
async fn caught_up(
    stage: &ReplayStage,
    since: Position,
    filter: &EventFilter,
    chunk: usize,
) -> [Vec<Event>; 2] {
    let mut both = [Vec::new(), Vec::new()];
    for (filtered, events) in [false, true].into_iter().zip(&mut both) {
        let catch_up = stage
            .live
            .catch_up(since, filter, FinishedReplay::Ends, u64::MAX);
        let mut catch_up = catch_up.await.expect("a position that is kept");
        catch_up.chunk = chunk;
        loop {
            let chunk = match filtered {
                true => catch_up.next(Some(filter)).await,
                false => catch_up.next(None).await,
            };
            let Some(chunk) = chunk.expect("a chunk") else {
                break;
            };
            let passing = chunk.iter().filter(|(head, _)| filter.matches(head));
            events.extend(passing.map(|(_, bytes)| Event::read(bytes).expect("an event")));
            let last = chunk.last().map_or(since, |(head, _)| head.position);
            assert!(last <= catch_up.position(), "the chunk is covered");
        }
        assert_eq!(catch_up.position(), catch_up.upto);
    }
    both
}

/// The script, then as many notes, of which each tenth has another type.
fn long_script(session: SessionId, notes: u64) -> Vec<WriteStep> {
    let mut steps = script(session);
    for seq in 6..6 + notes {
        let body = match seq % 10 {
            0 => Body::TurnCancelRequested(turnwire_event::body::turn::CancelRequested::new(
                "user", "x",
            )),
            _ => feedback(),
        };
        let event = Event {
            response_id: None,
            id: at(seq, 0),
            session_id: session,
            turn_id: None,
            actor: Actor::USER,
            timestamp: Timestamp::from_millis(5_000),
            trace: None,
            render: None,
            sub_agent_id: None,
            body,
        };
        steps.push(WriteStep::Commit(vec![event.clone()], Vec::new()));
        steps.push(WriteStep::Publish(vec![event]));
    }
    steps
}

#[tokio::test]
async fn filtered_catch_up_gives_what_passes_an_unfiltered_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let services = services(dir.path());
    let mut stage = ReplayStage::new(&services, 1);
    let steps = long_script(SessionId(Ulid(1)), 200);
    steps.iter().for_each(|step| stage.step(step));
    let of = |kinds: &[EventType]| EventFilter::of(kinds.iter().copied().collect());
    let filters = [
        (of(&[EventType::TurnCancelRequested]), 20),
        (of(&[EventType::TurnCompleted]), 1),
        (of(&[EventType::TurnStarted, EventType::MessageComplete]), 2),
        (of(&[EventType::MessageStart, EventType::TextDelta]), 1),
        (of(&[EventType::ToolCalled]), 0),
        (EventFilter::full(), 207),
    ];
    for (filter, from_start) in filters {
        for chunk in [1, 3, 512] {
            for since in [at(0, 0), at(2, 2), at(4, 0), at(57, 0), at(205, 0)] {
                let [plain, filtered] = caught_up(&stage, since, &filter, chunk).await;
                assert_eq!(plain, filtered, "since {since}, chunk {chunk}, {filter:?}");
                if since == at(0, 0) {
                    assert_eq!(filtered.len(), from_start, "{filter:?}");
                }
            }
        }
    }
}

// S3-037
#[tokio::test]
async fn replay_limit_counts_streaming_events_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let services = services(dir.path());
    let mut stage = ReplayStage::new(&services, 1);
    let steps = long_script(SessionId(Ulid(1)), 20);
    let of = |kinds: &[EventType]| EventFilter::of(kinds.iter().copied().collect());
    let filters = [
        of(&[EventType::MessageComplete]),
        of(&[EventType::MessageStart, EventType::TextDelta]),
        of(&[EventType::TextDelta, EventType::TurnCompleted]),
        of(&[EventType::ToolCalled]),
        EventFilter::full(),
    ];
    let mut sums = Vec::new();
    // At every moment: before, inside and after the message.
    for step in &steps {
        stage.step(step);
        let tail = stage.live.tail();
        for filter in &filters {
            let cursors = [at(0, 0), at(2, 1), at(3, 1), at(7, 0)];
            for since in cursors.into_iter().filter(|since| *since <= tail) {
                let [_, sent] = caught_up(&stage, since, filter, 512).await;
                let sent = sent.len() as u64;
                // Twice: the second reuses the count of the first.
                for _ in 0..2 {
                    let catch_up = |max| {
                        let live = &stage.live;
                        live.catch_up(since, filter, FinishedReplay::Ends, max)
                    };
                    let allowed = catch_up(sent).await;
                    assert!(
                        allowed.is_ok(),
                        "{sent} after {since} at {tail}: {filter:?}"
                    );
                    if let Some(less) = sent.checked_sub(1) {
                        let refused = catch_up(less).await.err();
                        assert_eq!(refused, Some(ReplayError::TooLarge(sent, less)));
                    }
                }
                sums.push(sent);
            }
        }
    }
    assert!(sums.contains(&0) && sums.iter().any(|sent| *sent > 20));
}

#[tokio::test]
async fn message_is_replayed_in_chunks_of_any_size() {
    let dir = tempfile::tempdir().expect("a folder");
    let services = services(dir.path());
    let session = SessionId(Ulid(1));
    let mut stage = ReplayStage::new(&services, 1);
    let steps = script(session);
    steps.iter().for_each(|step| stage.step(step));
    let upto = stage.live.tail();
    let read = |bytes| {
        let limits = ReadLimits {
            events: 100,
            bytes,
            scanned: 100,
        };
        let (mut at_end, mut events) = (at(0, 0), Vec::new());
        for _ in 0..100 {
            let remaining = ReplayRange {
                since: at(0, 0),
                upto,
                from: at_end,
                to: upto,
            };
            let store = services.store.as_ref();
            let deltas = FinishedReplay::Deltas;
            let chunk = read_chunk(store, session, remaining, (limits, None), &|_| None, deltas);
            let (chunk, end) = chunk.expect("a chunk");
            let size: usize = chunk.iter().map(|(_, bytes)| bytes.len()).sum();
            assert!(size <= bytes || chunk.len() == 1, "{size} of {bytes} bytes");
            assert!(end > at_end, "the replay goes on at {end}");
            at_end = end;
            events.extend(chunk);
            if at_end == upto {
                break;
            }
        }
        events
    };
    let whole = read(1 << 20);
    assert_eq!(whole.len(), 9, "five stored, start, two joined deltas, end");
    for bytes in [0, 300, 500, 700, 1_000, 2_000] {
        assert_eq!(read(bytes), whole, "{bytes} bytes a chunk");
    }
}

/// The text of the message at a client: the events up to `since`, then the received ones.
fn message_text(uncut: &[Event], since: Position, received: &[Event]) -> String {
    let earlier = uncut.iter().filter(|event| event.id <= since);
    let mut text = String::new();
    for event in earlier.chain(received) {
        match &event.body {
            Body::TextDelta(delta) => text.push_str(&delta.text),
            // Authoritative, as every client treats it.
            Body::MessageComplete(end) => {
                text = end
                    .final_content
                    .iter()
                    .filter_map(ContentBlock::as_text)
                    .collect()
            }
            _ => {}
        }
    }
    text
}

// S3-035, S3-039, I-11
#[tokio::test]
async fn law_2_no_schedule_loses_or_repeats_an_event() {
    let dir = tempfile::tempdir().expect("a folder");
    let services = services(dir.path());
    let reference = script(SessionId(Ulid(1)));
    let publish = |step: &WriteStep| match step {
        WriteStep::Publish(events) => events.clone(),
        WriteStep::Commit(..) => Vec::new(),
    };
    let uncut: Vec<Event> = reference.iter().flat_map(publish).collect();
    let n = reference.len();
    let mut id = 100;
    let mut runs = 0;
    for since in std::iter::once(at(0, 0)).chain(uncut.iter().map(|event| event.id)) {
        for look in 1..=n {
            for read in look..=n {
                for ring in [read, n.min(read + 1), n] {
                    id += 1;
                    let steps = script(SessionId(Ulid(id)));
                    let mut stage = ReplayStage::new(&services, id);
                    let chunk = 1 + (id as usize % 3);
                    let Some(received) =
                        client(&mut stage, &steps, since, [look, read, ring], chunk).await
                    else {
                        continue;
                    };
                    runs += 1;
                    let context = format!(
                        "since {since}, look {look}, read {read}, ring {ring}, chunk {chunk}: {received:#?}"
                    );
                    assert!(
                        received.windows(2).all(|pair| pair[0].id < pair[1].id),
                        "order: {context}"
                    );
                    assert!(
                        received.iter().all(|event| event.id > since),
                        "repeated: {context}"
                    );
                    let persisted = |events: &[Event]| -> Vec<Position> {
                        events
                            .iter()
                            .filter(|e| e.body.kind().is_persisted() && e.id > since)
                            .map(|e| e.id)
                            .collect()
                    };
                    assert_eq!(persisted(&received), persisted(&uncut), "lost: {context}");
                    assert_eq!(
                        message_text(&uncut, since, &received),
                        "one two three four",
                        "{context}"
                    );
                    let complete = received
                        .iter()
                        .filter(|e| e.body.kind() == EventType::MessageComplete)
                        .count();
                    assert_eq!(
                        complete,
                        usize::from(since < at(3, 3)),
                        "one end: {context}"
                    );
                    assert_deltas(since, &received, &context);
                }
            }
        }
    }
    assert!(runs > 1_000, "only {runs} schedules ran");
}

/// A message that the cursor precedes and that was complete when the client looked comes without
/// deltas; a message that the cursor is inside of comes with exactly the remaining ones.
fn assert_deltas(since: Position, received: &[Event], context: &str) {
    let deltas: String = received
        .iter()
        .filter_map(|event| match &event.body {
            Body::TextDelta(delta) => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    if since < at(2, 1) {
        assert!(
            deltas.is_empty() || deltas == "one two three four",
            "{context}"
        );
    } else if since < at(3, 2) {
        let seen = ["", "one ", "one two ", "one two three "][[at(2, 2), at(2, 3), at(3, 1)]
            .iter()
            .filter(|&&cut| since >= cut)
            .count()];
        assert_eq!(format!("{seen}{deltas}"), "one two three four", "{context}");
    }
}
