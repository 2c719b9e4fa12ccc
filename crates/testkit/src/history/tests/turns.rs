//! Doctored turns (I3, I4, law 8): endings, what they left open, starts after a cancel.

use super::*;
use turnwire_event::code::Phase;
use turnwire_event::{MessageId, TurnId, Ulid};

/// A story without the killed turn, so that events can be renumbered freely.
fn unkilled(expected: &[&str], doctor: impl Fn(&mut Story)) {
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

#[test]
fn i3_a_missing_terminal_is_told() {
    // The turn after it then starts while it runs, unless it is the last one.
    unkilled(&["TerminalMissing", "TurnsOverlap"], |story| {
        let at = index(story, |e| e.body.kind().is_terminal());
        story.events.remove(at);
    });
}

#[test]
fn i3_a_turn_that_starts_while_another_runs_is_told() {
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
fn beside(story: &mut Story, phase: Phase) {
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

#[test]
fn i3_a_turn_withdrawn_beside_another_is_sound() {
    unkilled(&[], |story| beside(story, Phase::Queued));
}

#[test]
fn i3_a_turn_beside_another_that_did_not_wait_is_told() {
    unkilled(&["TurnsOverlap"], |story| {
        beside(story, Phase::Route);
        // A snapshot in between would not know which of the two it is in.
        story.looks = 0;
    });
}

#[test]
fn i3_a_second_terminal_is_told() {
    unkilled(&["TerminalTwice"], |story| {
        let at = index(story, |e| e.body.kind().is_terminal());
        let again = story.events[at].clone();
        story.events.insert(at + 1, again);
    });
}

#[test]
fn i3_an_event_after_the_terminal_is_told() {
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

#[test]
fn i3_an_event_of_no_turn_is_told() {
    unkilled(&["OutsideTurn"], |story| {
        let at = index(story, kind(EventType::RouteDecided));
        story.events.swap(at - 1, at);
    });
}

#[test]
fn i4_a_tool_left_open_is_told() {
    unkilled(&["LeftOpen"], |story| {
        let at = index(story, kind(EventType::ToolCompleted));
        story.events.remove(at);
    });
}

#[test]
fn i4_a_call_left_open_is_told() {
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

#[test]
fn i4_a_tool_that_ends_twice_is_told() {
    unkilled(&["NotOpen"], |story| {
        let at = index(story, kind(EventType::ToolFailed));
        let again = story.events[at].clone();
        story.events.insert(at, again);
    });
}

#[test]
fn i4_a_lie_about_the_call_is_told() {
    unkilled(&["CalledFlag"], |story| {
        let at = index(story, kind(EventType::ToolFailed));
        let Body::ToolFailed(tool) = &mut story.events[at].body else {
            panic!("just found")
        };
        tool.called = false;
    });
}

#[test]
fn law_8_a_start_after_the_cancel_is_told() {
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

#[test]
fn law_8_a_second_cancel_is_told() {
    unkilled(&["CancelNotKept"], |story| {
        let asked = index(story, kind(EventType::TurnCancelRequested));
        let again = story.events[asked].clone();
        story.events.insert(asked, again);
    });
}

#[test]
fn law_8_an_end_other_than_the_cancel_is_told() {
    unkilled(&["CancelNotKept"], |story| {
        let done = index(story, kind(EventType::TurnCompleted));
        let turn = story.events[done].turn_id;
        let asked = index(story, kind(EventType::TurnCancelRequested));
        let mut cancel = story.events[asked].clone();
        cancel.turn_id = turn;
        story.events.insert(done, cancel);
    });
}
