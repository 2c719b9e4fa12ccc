//! The invariants of the events of one session, each violation as a sentence.

use std::collections::{HashMap, HashSet};

use turnwire_event::content::content_json;
use turnwire_event::fold::MessageFold;
use turnwire_event::{
    ActorKind, Body, ContentBlock, Event, EventType, MessageId, Position, Sub, Timestamp, TurnId,
};

/// Every violated invariant.
pub(crate) fn violations(events: &[Event]) -> Vec<String> {
    let mut out = order(events);
    out.extend(turns(events));
    out.extend(tools(events));
    out.extend(messages(events));
    out.extend(dispatch(events));
    out
}

/// Invariant 2: positions are dense and increase, times never decrease.
fn order(events: &[Event]) -> Vec<String> {
    let mut out = Vec::new();
    let mut last: Option<(Position, Timestamp)> = None;
    for event in events {
        let at = event.id;
        if event.body.kind().is_persisted() != at.is_persisted() {
            out.push(format!("{at} is in the wrong lane"));
        }
        let (seq, sub, time) =
            last.map_or((0, Sub(0), event.timestamp), |(p, t)| (p.seq.0, p.sub, t));
        let follows = if at.is_persisted() {
            at.seq.0 == seq + 1
        } else {
            at.seq.0 == seq && (at.sub == sub.next() || at.sub == Sub::LAST && sub < Sub::LAST)
        };
        if !follows {
            out.push(format!("{at} does not follow the event before it"));
        }
        if event.timestamp < time {
            out.push(format!("{at} is earlier than the event before it"));
        }
        last = Some((at, event.timestamp));
    }
    out
}

/// Invariants 1 and 8: one terminal event, last of its turn; nothing starts after a cancel.
fn turns(events: &[Event]) -> Vec<String> {
    let mut out = Vec::new();
    let mut ended: HashSet<TurnId> = HashSet::new();
    let mut started: HashSet<TurnId> = HashSet::new();
    let mut cancelled: HashSet<TurnId> = HashSet::new();
    for event in events {
        let kind = event.body.kind();
        let family = kind.name().split('.').next().unwrap_or_default();
        let Some(turn) = event.turn_id else {
            if !["session", "bus", "feedback", "routing"].contains(&family) {
                out.push(format!("{} {kind} has no turn", event.id));
            }
            continue;
        };
        if kind == EventType::TurnStarted && !started.insert(turn) {
            out.push(format!("{turn} starts twice"));
        }
        if !started.contains(&turn) {
            out.push(format!("{} {kind} comes before its turn", event.id));
        }
        if ended.contains(&turn) {
            out.push(format!(
                "{} {kind} comes after its turn's terminal",
                event.id
            ));
        }
        if cancelled.contains(&turn) && (kind.is_start() || kind == EventType::TurnCompleted) {
            out.push(format!("{} {kind} comes after the cancel", event.id));
        }
        if kind == EventType::TurnCancelRequested {
            cancelled.insert(turn);
        }
        if kind.is_terminal() {
            ended.insert(turn);
        }
    }
    out.extend(
        started
            .difference(&ended)
            .map(|t| format!("{t} has no terminal")),
    );
    out
}

/// Invariant 6: every called tool ends once before the terminal event; only a tool that was not called
/// may fail without a call.
fn tools(events: &[Event]) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: HashMap<String, TurnId> = HashMap::new();
    for event in events {
        let at = event.id;
        let kind = event.body.kind();
        let (id, called) = if let Body::ToolCalled(tool) = &event.body {
            open.extend(
                event
                    .turn_id
                    .map(|turn| (tool.tool_use_id.to_string(), turn)),
            );
            continue;
        } else if let Body::ToolCompleted(tool) = &event.body {
            (tool.tool_use_id.to_string(), true)
        } else if let Body::ToolFailed(tool) = &event.body {
            (tool.tool_use_id.to_string(), tool.called)
        } else {
            if kind.is_terminal() {
                let open_tools = open
                    .iter()
                    .filter(|(_, turn)| Some(**turn) == event.turn_id);
                out.extend(open_tools.map(|(id, _)| format!("{id} is open at the terminal")));
            }
            continue;
        };
        if open.remove(&id).is_some() != called {
            out.push(format!("{at} {kind} ends a tool that was not called"));
        }
    }
    out
}

/// Invariant 5: the deltas add up to the final content, and the log stores its hash.
fn messages(events: &[Event]) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: HashMap<MessageId, MessageFold> = HashMap::new();
    let mut done: HashMap<MessageId, String> = HashMap::new();
    for event in events {
        let at = event.id;
        if let (Body::MessageStart(start), Some(turn)) = (&event.body, event.turn_id) {
            let model = start.model.clone();
            let fold = MessageFold::new(start.message_id, turn, model, at, event.timestamp);
            open.insert(start.message_id, fold);
        } else if let Body::MessageComplete(end) = &event.body {
            let folded: Option<Vec<ContentBlock>> =
                open.remove(&end.message_id).map(|fold| fold.content());
            if folded.as_ref() != Some(&end.final_content) {
                out.push(format!("{at} the deltas do not sum to the final content"));
            }
            done.insert(end.message_id, content_json(&end.final_content).1);
        } else if event.actor.kind() == ActorKind::Subagent {
            // The text of a sub-agent's model is not published (D-46).
        } else if let Body::LlmCallCompleted(call) = &event.body {
            if done.get(&call.message_id) != Some(&call.content_sha256) {
                out.push(format!("{at} vouches for another content"));
            }
        } else if let Body::LlmCallFailed(call) = &event.body {
            if call.message_id.and_then(|id| done.get(&id)) != call.content_sha256.as_ref() {
                out.push(format!("{at} vouches for another content"));
            }
        } else {
            for fold in open.values_mut() {
                fold.apply(at, event.timestamp, &event.body);
            }
        }
    }
    out.extend(open.keys().map(|id| format!("{id} is never complete")));
    out
}

/// D-78, S2-064: sub-agents and steps end before their turn, and the dispatch trace comes once, right
/// before the terminal event.
fn dispatch(events: &[Event]) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: HashSet<String> = HashSet::new();
    let mut before = None;
    for event in events {
        let at = event.id;
        let kind = event.body.kind();
        let mut is_known = true;
        if let Body::SubagentStarted(started) = &event.body {
            is_known = open.insert(started.invocation_id.to_string());
        } else if let Body::PlanStepStarted(step) = &event.body {
            is_known = open.insert(step.plan_step_id.clone());
        } else if let Body::SubagentCompleted(end) = &event.body {
            is_known = open.remove(&end.invocation_id.to_string());
        } else if let Body::SubagentFailed(end) = &event.body {
            is_known = open.remove(&end.invocation_id.to_string());
        } else if let Body::PlanStepCompleted(step) = &event.body {
            is_known = open.remove(&step.plan_step_id);
        }
        if !is_known {
            out.push(format!(
                "{at} {kind} begins twice or ends what had not begun"
            ));
        }
        let traced = before == Some(EventType::DispatchTraced);
        if traced != kind.is_terminal() {
            out.push(format!(
                "{at} {kind} has no trace before it, or one that is not its own"
            ));
        }
        if kind.is_terminal() {
            out.extend(open.drain().map(|id| format!("{id} outlives its turn")));
        }
        before = Some(kind);
    }
    out
}

/// Event lists with one defect each, and the invariant that each violates.
pub(crate) fn mutations(good: &[Event]) -> Vec<(Vec<Event>, &'static str)> {
    let at = |kind: EventType| {
        let index = good.iter().position(|event| event.body.kind() == kind);
        index.expect("the scenario has one")
    };
    let without = |kind: EventType| {
        let mut events = good.to_vec();
        events.remove(at(kind));
        events
    };
    let swapped = |a: usize, b: usize| {
        let mut events = good.to_vec();
        events.swap(a, b);
        events
    };
    let mut late = good.to_vec();
    late.push(good[at(EventType::RouteDecided)].clone());
    let mut early = good.to_vec();
    early[3].timestamp = Timestamp::from_millis(0);
    let mut other = good.to_vec();
    for event in &mut other {
        if let Body::TextDelta(delta) = &mut event.body {
            delta.text.push('!');
        }
    }
    vec![
        (without(EventType::RouteDecided), "does not follow"),
        (without(EventType::TextDelta), "do not sum"),
        (without(EventType::TurnCompleted), "has no terminal"),
        (without(EventType::TurnStarted), "comes before its turn"),
        (without(EventType::ToolCompleted), "open at the terminal"),
        (without(EventType::ToolCalled), "was not called"),
        (without(EventType::MessageComplete), "never complete"),
        (swapped(2, 3), "does not follow"),
        (without(EventType::DispatchTraced), "has no trace"),
        (late, "after its turn's terminal"),
        (early, "earlier than"),
        (other, "do not sum"),
    ]
}
