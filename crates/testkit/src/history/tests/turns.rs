//! Doctored turns (I3, I4, law 8): endings, what they left open, starts after a cancel.

use super::*;
use turnwire_event::code::Phase;
use turnwire_event::{MessageId, TurnId, Ulid};

/// A story without the killed turn, so that events can be renumbered freely.
fn unkilled(expected: &[&str], edit_fixture: impl Fn(&mut SessionFixture)) {
    fixture_violates(expected, |fixture| {
        let killed = fixture.kills[0];
        let turn = fixture.events[killed].turn_id;
        fixture.events.retain(|event| event.turn_id != turn);
        fixture.lost.clear();
        fixture.kills.clear();
        edit_fixture(fixture);
        renumber(fixture);
    });
}

// I3
#[test]
fn missing_terminal_is_reported() {
    // The turn after it then starts while it runs, unless it is the last one.
    unkilled(&["TerminalMissing", "TurnsOverlap"], |fixture| {
        let at = index(fixture, |e| e.body.kind().is_terminal());
        fixture.events.remove(at);
    });
}

// I3
#[test]
fn overlapping_turn_start_is_reported() {
    unkilled(&["TurnsOverlap"], |fixture| {
        let end = index(fixture, |e| e.body.kind().is_terminal());
        let next = (end..fixture.events.len())
            .find(|&at| fixture.events[at].body.kind() == EventType::TurnStarted);
        let started = fixture
            .events
            .remove(next.expect("it is not the last turn"));
        fixture.events.insert(end, started);
        // A snapshot in between would not know which of the two it is in.
        fixture.snapshot_count = 0;
    });
}

/// Puts a turn that never ran beside one that calls a tool: its start, its cancel, its end.
fn beside(fixture: &mut SessionFixture, phase: Phase) {
    let at = index(fixture, kind(EventType::ToolCalled));
    let beside = Some(TurnId(Ulid(9_000)));
    let mut start = fixture.events[index(fixture, kind(EventType::TurnStarted))].clone();
    let Body::TurnStarted(started) = &mut start.body else {
        unreachable!("it was found as one")
    };
    started.user_message_id = MessageId(Ulid(9_001));
    let cancel_index = fixture.events[index(fixture, kind(EventType::TurnCancelRequested))].clone();
    let mut end = fixture.events[index(fixture, kind(EventType::TurnCancelled))].clone();
    let Body::TurnCancelled(cancelled) = &mut end.body else {
        unreachable!("it was found as one")
    };
    cancelled.phase = phase;
    let timestamp = fixture.events[at].timestamp;
    let traced = fixture.events[index(fixture, kind(EventType::DispatchTraced))].clone();
    let its_own = [start, cancel_index, traced, end].map(|event| Event {
        turn_id: beside,
        timestamp,
        ..event
    });
    fixture.events.splice(at + 1..at + 1, its_own);
}

// I3
#[test]
fn withdrawn_queued_turn_beside_running_turn_is_valid() {
    unkilled(&[], |fixture| beside(fixture, Phase::Queued));
}

// I3
#[test]
fn ended_turn_that_never_queued_is_reported() {
    unkilled(&["TurnsOverlap"], |fixture| {
        beside(fixture, Phase::Route);
        // A snapshot in between would not know which of the two it is in.
        fixture.snapshot_count = 0;
    });
}

// I3
#[test]
fn second_terminal_is_reported() {
    unkilled(&["TerminalTwice"], |fixture| {
        let at = index(fixture, |e| e.body.kind().is_terminal());
        let again = fixture.events[at].clone();
        fixture.events.insert(at + 1, again);
    });
}

// I3
#[test]
fn event_after_terminal_is_reported() {
    unkilled(&["AfterTerminal"], |fixture| {
        let end = index(fixture, |e| e.body.kind().is_terminal());
        let turn = fixture.events[end].turn_id;
        let at = index(fixture, |e| {
            e.turn_id == turn && e.body.kind() == EventType::RouteDecided
        });
        let late = fixture.events[at].clone();
        fixture.events.insert(end + 1, late);
    });
}

// I3
#[test]
fn event_without_turn_is_reported() {
    unkilled(&["OutsideTurn"], |fixture| {
        let at = index(fixture, kind(EventType::RouteDecided));
        fixture.events.swap(at - 1, at);
    });
}

// I4
#[test]
fn open_tool_call_is_reported() {
    unkilled(&["LeftOpen"], |fixture| {
        let at = index(fixture, kind(EventType::ToolCompleted));
        fixture.events.remove(at);
    });
}

// I4
#[test]
fn open_model_call_is_reported() {
    unkilled(&["LeftOpen"], |fixture| {
        let at = index(fixture, |e| matches!(&e.body, Body::LlmCallFailed(_)));
        let Body::LlmCallFailed(call) = &mut fixture.events[at].body else {
            panic!("just found")
        };
        assert!(call.message_id.is_some());
        let started = index(fixture, kind(EventType::LlmCallStarted));
        let mut second = fixture.events[at].clone();
        let Body::LlmCallStarted(first) = &fixture.events[started].body else {
            panic!("just found")
        };
        let mut other = first.clone();
        other.call_id.0.0 += 5_000_000;
        second.body = Body::LlmCallStarted(other);
        let turn = second.turn_id;
        let begin = index(fixture, |e| {
            e.turn_id == turn && e.body.kind() == EventType::LlmCallStarted
        });
        fixture.events.insert(begin, second);
    });
}

// I4
#[test]
fn tool_ending_twice_is_reported() {
    unkilled(&["NotOpen"], |fixture| {
        let at = index(fixture, kind(EventType::ToolFailed));
        let again = fixture.events[at].clone();
        fixture.events.insert(at, again);
    });
}

// I4
#[test]
fn wrong_model_call_summary_is_reported() {
    unkilled(&["CalledFlag"], |fixture| {
        let at = index(fixture, kind(EventType::ToolFailed));
        let Body::ToolFailed(tool) = &mut fixture.events[at].body else {
            panic!("just found")
        };
        tool.called = false;
    });
}

// LAW-8
#[test]
fn work_started_after_cancel_is_reported() {
    unkilled(&["StartedAfterCancel"], |fixture| {
        let cancel_index = index(fixture, |e| e.body.kind() == EventType::TurnCancelRequested);
        let turn = fixture.events[cancel_index].turn_id;
        let last = fixture.events[..cancel_index].iter().rposition(|e| {
            e.turn_id == turn
                && matches!(
                    e.body.kind(),
                    EventType::ToolCalled | EventType::MessageStart
                )
        });
        let cancel = fixture.events.remove(cancel_index);
        fixture
            .events
            .insert(last.expect("a start before the cancel"), cancel);
    });
}

// LAW-8
#[test]
fn second_cancel_is_reported() {
    unkilled(&["CancelNotKept"], |fixture| {
        let cancel_index = index(fixture, kind(EventType::TurnCancelRequested));
        let again = fixture.events[cancel_index].clone();
        fixture.events.insert(cancel_index, again);
    });
}

// LAW-8
#[test]
fn other_terminal_after_cancel_is_reported() {
    unkilled(&["CancelNotKept"], |fixture| {
        let done = index(fixture, kind(EventType::TurnCompleted));
        let turn = fixture.events[done].turn_id;
        let cancel_index = index(fixture, kind(EventType::TurnCancelRequested));
        let mut cancel = fixture.events[cancel_index].clone();
        cancel.turn_id = turn;
        fixture.events.insert(done, cancel);
    });
}
