//! Turns in the log (I3, I4, law 8): each starts once, alone in its session, ends once and last,
//! has closed all it opened, and starts nothing once it was asked to stop.

use std::collections::BTreeMap;

use turnwire_event::code::Phase;
use turnwire_event::{Body, CallId, Event, Position, SessionId, ToolUseId, TurnId};

use super::parse::{ParsedClient, ParsedLog, StreamItem};
use super::violation::Violation;

/// What is known of a turn while its log is walked.
#[derive(Debug, Default)]
struct TurnState {
    calls: Vec<CallId>,
    /// Tools by whether they are still open; a closed one must not end again.
    tools: BTreeMap<ToolUseId, bool>,
    asked: Option<Position>,
    ended: Option<Position>,
}

/// Where each turn was asked to stop and where it ended.
#[derive(Debug, Default)]
pub(super) struct TurnEnds(BTreeMap<TurnId, (Option<Position>, Option<Position>)>);

impl TurnEnds {
    /// Where the turn was asked to stop.
    pub(super) fn asked(&self, turn: TurnId) -> Option<Position> {
        self.0.get(&turn)?.0
    }

    /// Where the turn ended.
    pub(super) fn ended(&self, turn: TurnId) -> Option<Position> {
        self.0.get(&turn)?.1
    }

    /// Whether the turn ever started.
    pub(super) fn started(&self, turn: TurnId) -> bool {
        self.0.contains_key(&turn)
    }
}

/// Walks one session's log.
pub(super) fn check(log: &ParsedLog<'_>, found: &mut Vec<Violation>) -> TurnEnds {
    let session = log.id;
    let mut turns: BTreeMap<TurnId, TurnState> = BTreeMap::new();
    let mut running: Option<TurnId> = None;
    for (at, event) in log.events.iter().enumerate() {
        let Some(turn) = event.turn_id else { continue };
        let (id, kind) = (event.id, event.body.kind());
        if matches!(event.body, Body::TurnStarted(_)) {
            match running {
                Some(_) if withdrawn(turn, &log.events[at + 1..]) => {}
                Some(running) => found.push(Violation::TurnsOverlap {
                    session,
                    turn,
                    running,
                    id,
                }),
                None => {}
            }
            running = running
                .filter(|_| withdrawn(turn, &log.events[at + 1..]))
                .or(Some(turn));
            if turns.insert(turn, TurnState::default()).is_some() {
                found.push(Violation::OutsideTurn {
                    session,
                    turn,
                    id,
                    kind,
                });
            }
            continue;
        }
        let Some(state) = turns.get_mut(&turn) else {
            found.push(Violation::OutsideTurn {
                session,
                turn,
                id,
                kind,
            });
            continue;
        };
        if state.ended.is_some() {
            found.push(if kind.is_terminal() {
                Violation::TerminalTwice { session, turn, id }
            } else {
                Violation::AfterTerminal {
                    session,
                    turn,
                    id,
                    kind,
                }
            });
            continue;
        }
        step(session, turn, state, event, found);
        if kind.is_terminal() {
            running = running.filter(|&r| r != turn);
        }
    }
    for (&turn, state) in &turns {
        if state.ended.is_none() {
            found.push(Violation::TerminalMissing { session, turn });
        }
    }
    TurnEnds(
        turns
            .into_iter()
            .map(|(turn, state)| (turn, (state.asked, state.ended)))
            .collect(),
    )
}

/// Whether a turn was withdrawn from the queue: asked to stop, traced and ended by the three events
/// right after its start. Such a turn may stand beside the one that runs.
fn withdrawn(turn: TurnId, after: &[Event]) -> bool {
    let [asked, traced, ended, ..] = after else {
        return false;
    };
    let its_own = [asked, traced, ended]
        .iter()
        .all(|e| e.turn_id == Some(turn));
    let queued = matches!(&ended.body, Body::TurnCancelled(end) if end.phase == Phase::Queued);
    its_own
        && queued
        && matches!(asked.body, Body::TurnCancelRequested(_))
        && matches!(traced.body, Body::DispatchTraced(_))
}

fn step(
    session: SessionId,
    turn: TurnId,
    state: &mut TurnState,
    event: &Event,
    found: &mut Vec<Violation>,
) {
    let (id, kind) = (event.id, event.body.kind());
    if let Some(asked) = state.asked
        && kind.is_start()
    {
        found.push(Violation::StartedAfterCancel {
            session,
            turn,
            kind,
            id,
            asked,
        });
    }
    let not_open = |what: String| Violation::NotOpen {
        session,
        turn,
        what,
        id,
    };
    match &event.body {
        Body::TurnCancelRequested(_) => {
            if state.asked.is_some() {
                found.push(Violation::CancelNotKept {
                    session,
                    turn,
                    kind,
                    id,
                });
            }
            state.asked = Some(id);
        }
        Body::LlmCallStarted(call) => state.calls.push(call.call_id),
        Body::LlmCallCompleted(call) => close_call(state, call.call_id, found, not_open),
        Body::LlmCallFailed(call) => close_call(state, call.call_id, found, not_open),
        Body::ToolCalled(tool) => {
            let before = state.tools.insert(tool.tool_use_id, true);
            found.extend(before.map(|_| not_open(format!("tool {}", tool.tool_use_id))));
        }
        Body::ToolCompleted(tool) => {
            let before = state.tools.insert(tool.tool_use_id, false);
            let wrong = before != Some(true);
            found.extend(wrong.then(|| not_open(format!("tool {}", tool.tool_use_id))));
        }
        Body::ToolFailed(tool) => {
            let before = state.tools.insert(tool.tool_use_id, false);
            if before == Some(false) {
                found.push(not_open(format!("tool {}", tool.tool_use_id)));
            } else if before.is_some() != tool.called {
                let what = format!("tool.failed of {}", tool.tool_use_id);
                found.push(Violation::CalledFlag {
                    session,
                    what,
                    id,
                    told: tool.called,
                });
            }
        }
        Body::TurnCompleted(_) | Body::TurnCancelled(_) => end(session, turn, state, event, found),
        _ => {}
    }
}

fn close_call(
    state: &mut TurnState,
    call: CallId,
    found: &mut Vec<Violation>,
    not_open: impl Fn(String) -> Violation,
) {
    let before = state.calls.len();
    state.calls.retain(|&open| open != call);
    if state.calls.len() == before {
        found.push(not_open(format!("model call {call}")));
    }
}

fn end(
    session: SessionId,
    turn: TurnId,
    state: &mut TurnState,
    event: &Event,
    found: &mut Vec<Violation>,
) {
    let (id, kind) = (event.id, event.body.kind());
    let cancelled = matches!(event.body, Body::TurnCancelled(_));
    if state.asked.is_some() != cancelled {
        found.push(Violation::CancelNotKept {
            session,
            turn,
            kind,
            id,
        });
    }
    let calls = state.calls.iter().map(|call| format!("model call {call}"));
    let tools = state.tools.iter().filter(|(_, open)| **open);
    let tools = tools.map(|(tool, _)| format!("tool {tool}"));
    for what in calls.chain(tools) {
        found.push(Violation::LeftOpen {
            session,
            turn,
            what,
        });
    }
    state.ended = Some(id);
}

/// Law 8 and I3 for what only clients see: no transient event outside its turn, no message
/// begun after the cancel.
pub(super) fn check_transient(
    log: &ParsedLog<'_>,
    ends: &TurnEnds,
    client: &ParsedClient<'_>,
    found: &mut Vec<Violation>,
) {
    let session = log.id;
    for item in client.stretches.iter().flat_map(|s| &s.items) {
        let StreamItem::Event(_, _, event) = item else {
            continue;
        };
        let (id, kind) = (event.id, event.body.kind());
        let Some(turn) = event.turn_id.filter(|_| !kind.is_persisted()) else {
            continue;
        };
        if !ends.started(turn) {
            found.push(Violation::OutsideTurn {
                session,
                turn,
                id,
                kind,
            });
        }
        if ends.ended(turn).is_some_and(|end| id > end) {
            found.push(Violation::AfterTerminal {
                session,
                turn,
                id,
                kind,
            });
        }
        if let Some(asked) = ends.asked(turn)
            && id > asked
            && kind.is_start()
        {
            found.push(Violation::StartedAfterCancel {
                session,
                turn,
                kind,
                id,
                asked,
            });
        }
    }
}
