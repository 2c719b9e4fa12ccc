//! Doctored turns (I3, I4, law 8): endings, what they left open, starts after a cancel.

use super::*;
use turnwire_event::code::Phase;
use turnwire_event::{MessageId, TurnId, Ulid};

/// A story without the killed turn, so that events can be renumbered freely.
fn unkilled(expected: &[&str], doctor: impl Fn(&mut SessionFixture)) {
    told(expected, |story| {
        let killed = story.kills[0];
        let turn = story.events[killed].turn_id;
        story.events.retain(|event| event.turn_id != turn);
        story.lost.clear();
        story.kills.clear();
        doctor(story);
        renumber(story);
    });
}

// I3
#[test]
fn missing_terminal_is_reported() {
    // The turn after it then starts while it runs, unless it is the last one.
    unkilled(&["TerminalMissing", "TurnsOverlap"], |story| {
        let at = index(story, |e| e.body.kind().is_terminal());
        story.events.remove(at);
    });
}

// I3
#[test]
fn overlapping_turn_start_is_reported() {
    unkilled(&["TurnsOverlap"], |story| {
        let end = index(story, |e| e.body.kind().is_terminal());
        let next = (end..story.events.len())
            .find(|&at| story.events[at].body.kind() == EventType::TurnStarted);
        let started = story.events.remove(next.expect("it is not the last turn"));
        story.events.insert(end, started);
        // A snapshot in between would not know which of the two it is in.
        story.looks = 0;
    });
}

/// Puts a turn that never ran beside one that calls a tool: its start, its cancel, its end.
fn beside(story: &mut SessionFixture, phase: Phase) {
    let at = index(story, kind(EventType::ToolCalled));
    let beside = Some(TurnId(Ulid(9_000)));
    let mut start = story.events[index(story, kind(EventType::TurnStarted))].clone();
    let Body::TurnStarted(started) = &mut start.body else {
        unreachable!("it was found as one")
    };
    started.user_message_id = MessageId(Ulid(9_001));
    let asked = story.events[index(story, kind(EventType::TurnCancelRequested))].clone();
    let mut end = story.events[index(story, kind(EventType::TurnCancelled))].clone();
    let Body::TurnCancelled(cancelled) = &mut end.body else {
        unreachable!("it was found as one")
    };
    cancelled.phase = phase;
    let timestamp = story.events[at].timestamp;
    let traced = story.events[index(story, kind(EventType::DispatchTraced))].clone();
    let its_own = [start, asked, traced, end].map(|event| Event {
        turn_id: beside,
        timestamp,
        ..event
    });
    story.events.splice(at + 1..at + 1, its_own);
}

// I3
#[test]
fn withdrawn_queued_turn_beside_running_turn_is_valid() {
    unkilled(&[], |story| beside(story, Phase::Queued));
}

// I3
#[test]
fn ended_turn_that_never_queued_is_reported() {
    unkilled(&["TurnsOverlap"], |story| {
        beside(story, Phase::Route);
        // A snapshot in between would not know which of the two it is in.
        story.looks = 0;
    });
}

// I3
#[test]
fn second_terminal_is_reported() {
    unkilled(&["TerminalTwice"], |story| {
        let at = index(story, |e| e.body.kind().is_terminal());
        let again = story.events[at].clone();
        story.events.insert(at + 1, again);
    });
}

// I3
#[test]
fn event_after_terminal_is_reported() {
    unkilled(&["AfterTerminal"], |story| {
        let end = index(story, |e| e.body.kind().is_terminal());
        let turn = story.events[end].turn_id;
        let at = index(story, |e| {
            e.turn_id == turn && e.body.kind() == EventType::RouteDecided
        });
        let late = story.events[at].clone();
        story.events.insert(end + 1, late);
    });
}

// I3
#[test]
fn event_without_turn_is_reported() {
    unkilled(&["OutsideTurn"], |story| {
        let at = index(story, kind(EventType::RouteDecided));
        story.events.swap(at - 1, at);
    });
}

// I4
#[test]
fn open_tool_call_is_reported() {
    unkilled(&["LeftOpen"], |story| {
        let at = index(story, kind(EventType::ToolCompleted));
        story.events.remove(at);
    });
}

// I4
#[test]
fn open_model_call_is_reported() {
    unkilled(&["LeftOpen"], |story| {
        let at = index(story, |e| matches!(&e.body, Body::LlmCallFailed(_)));
        let Body::LlmCallFailed(call) = &mut story.events[at].body else {
            panic!("just found")
        };
        assert!(call.message_id.is_some());
        let started = index(story, kind(EventType::LlmCallStarted));
        let mut second = story.events[at].clone();
        let Body::LlmCallStarted(first) = &story.events[started].body else {
            panic!("just found")
        };
        let mut other = first.clone();
        other.call_id.0.0 += 5_000_000;
        second.body = Body::LlmCallStarted(other);
        let turn = second.turn_id;
        let begin = index(story, |e| {
            e.turn_id == turn && e.body.kind() == EventType::LlmCallStarted
        });
        story.events.insert(begin, second);
    });
}

// I4
#[test]
fn tool_ending_twice_is_reported() {
    unkilled(&["NotOpen"], |story| {
        let at = index(story, kind(EventType::ToolFailed));
        let again = story.events[at].clone();
        story.events.insert(at, again);
    });
}

// I4
#[test]
fn wrong_model_call_summary_is_reported() {
    unkilled(&["CalledFlag"], |story| {
        let at = index(story, kind(EventType::ToolFailed));
        let Body::ToolFailed(tool) = &mut story.events[at].body else {
            panic!("just found")
        };
        tool.called = false;
    });
}

// law 8
#[test]
fn work_started_after_cancel_is_reported() {
    unkilled(&["StartedAfterCancel"], |story| {
        let asked = index(story, |e| e.body.kind() == EventType::TurnCancelRequested);
        let turn = story.events[asked].turn_id;
        let last = story.events[..asked].iter().rposition(|e| {
            e.turn_id == turn
                && matches!(
                    e.body.kind(),
                    EventType::ToolCalled | EventType::MessageStart
                )
        });
        let cancel = story.events.remove(asked);
        story
            .events
            .insert(last.expect("a start before the cancel"), cancel);
    });
}

// law 8
#[test]
fn second_cancel_is_reported() {
    unkilled(&["CancelNotKept"], |story| {
        let asked = index(story, kind(EventType::TurnCancelRequested));
        let again = story.events[asked].clone();
        story.events.insert(asked, again);
    });
}

// law 8
#[test]
fn other_terminal_after_cancel_is_reported() {
    unkilled(&["CancelNotKept"], |story| {
        let done = index(story, kind(EventType::TurnCompleted));
        let turn = story.events[done].turn_id;
        let asked = index(story, kind(EventType::TurnCancelRequested));
        let mut cancel = story.events[asked].clone();
        cancel.turn_id = turn;
        story.events.insert(done, cancel);
    });
}
