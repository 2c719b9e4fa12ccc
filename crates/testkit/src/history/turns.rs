//! Checks the turns in the log (I3, I4, law 8): each starts once, alone in its session, has one
//! terminal as its last event, closes all it opened, and starts nothing after a cancel request.

use std::collections::BTreeMap;

use turnwire_event::code::Phase;
use turnwire_event::{Body, CallId, Event, Position, SessionId, ToolUseId, TurnId};

use super::parse::{ParsedClient, ParsedLog, StreamItem};
use super::violation::Violation;

/// The state of one turn while [`check`] walks the log.
#[derive(Debug, Default)]
struct TurnState {
    open_calls: Vec<CallId>,
    /// Every called tool with `true` while it is open; a closed tool must not end again.
    tools: BTreeMap<ToolUseId, bool>,
    cancel_requested: Option<Position>,
    ended: Option<Position>,
}

/// The positions of the cancel request and of the terminal of each turn.
#[derive(Debug, Default)]
pub(super) struct TurnEnds(BTreeMap<TurnId, (Option<Position>, Option<Position>)>);

impl TurnEnds {
    /// The position of the turn's cancel request.
    pub(super) fn cancel_requested(&self, turn: TurnId) -> Option<Position> {
        self.0.get(&turn)?.0
    }

    /// The position of the turn's terminal.
    pub(super) fn ended(&self, turn: TurnId) -> Option<Position> {
        self.0.get(&turn)?.1
    }

    /// True if the turn has a start event.
    pub(super) fn started(&self, turn: TurnId) -> bool {
        self.0.contains_key(&turn)
    }
}

/// Walks one session's log.
pub(super) fn check(log: &ParsedLog<'_>, violations: &mut Vec<Violation>) -> TurnEnds {
    let session = log.id;
    let mut turns: BTreeMap<TurnId, TurnState> = BTreeMap::new();
    let mut running: Option<TurnId> = None;
    for (at, event) in log.events.iter().enumerate() {
        let Some(turn) = event.turn_id else { continue };
        let (id, kind) = (event.id, event.body.kind());
        if matches!(event.body, Body::TurnStarted(_)) {
            match running {
                Some(_) if is_withdrawn(turn, &log.events[at + 1..]) => {}
                Some(running) => violations.push(Violation::TurnsOverlap {
                    session,
                    turn,
                    running,
                    id,
                }),
                None => {}
            }
            running = running
                .filter(|_| is_withdrawn(turn, &log.events[at + 1..]))
                .or(Some(turn));
            if turns.insert(turn, TurnState::default()).is_some() {
                violations.push(Violation::OutsideTurn {
                    session,
                    turn,
                    id,
                    kind,
                });
            }
            continue;
        }
        let Some(state) = turns.get_mut(&turn) else {
            violations.push(Violation::OutsideTurn {
                session,
                turn,
                id,
                kind,
            });
            continue;
        };
        if state.ended.is_some() {
            violations.push(if kind.is_terminal() {
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
        apply_event(session, turn, state, event, violations);
        if kind.is_terminal() {
            running = running.filter(|&r| r != turn);
        }
    }
    for (&turn, state) in &turns {
        if state.ended.is_none() {
            violations.push(Violation::TerminalMissing { session, turn });
        }
    }
    TurnEnds(
        turns
            .into_iter()
            .map(|(turn, state)| (turn, (state.cancel_requested, state.ended)))
            .collect(),
    )
}

/// True if a turn was withdrawn from the queue: cancel request, trace and terminal are the three
/// events after its start. Such a turn may overlap the running one.
fn is_withdrawn(turn: TurnId, after: &[Event]) -> bool {
    let [cancel_requested, traced, ended, ..] = after else {
        return false;
    };
    let its_own = [cancel_requested, traced, ended]
        .iter()
        .all(|e| e.turn_id == Some(turn));
    let queued =
        matches!(&ended.body, Body::TurnCancelled(end_turn) if end_turn.phase == Phase::Queued);
    its_own
        && queued
        && matches!(cancel_requested.body, Body::TurnCancelRequested(_))
        && matches!(traced.body, Body::DispatchTraced(_))
}

fn apply_event(
    session: SessionId,
    turn: TurnId,
    state: &mut TurnState,
    event: &Event,
    violations: &mut Vec<Violation>,
) {
    let (id, kind) = (event.id, event.body.kind());
    if let Some(cancel_requested) = state.cancel_requested
        && kind.is_start()
    {
        violations.push(Violation::StartedAfterCancel {
            session,
            turn,
            kind,
            id,
            cancel_requested,
        });
    }
    let not_open = |subject: String| Violation::NotOpen {
        session,
        turn,
        subject,
        id,
    };
    match &event.body {
        Body::TurnCancelRequested(_) => {
            if state.cancel_requested.is_some() {
                violations.push(Violation::CancelNotKept {
                    session,
                    turn,
                    kind,
                    id,
                });
            }
            state.cancel_requested = Some(id);
        }
        Body::LlmCallStarted(call) => state.open_calls.push(call.call_id),
        Body::LlmCallCompleted(call) => close_call(state, call.call_id, violations, not_open),
        Body::LlmCallFailed(call) => close_call(state, call.call_id, violations, not_open),
        Body::ToolCalled(tool) => {
            let before = state.tools.insert(tool.tool_use_id, true);
            violations.extend(before.map(|_| not_open(format!("tool {}", tool.tool_use_id))));
        }
        Body::ToolCompleted(tool) => {
            let before = state.tools.insert(tool.tool_use_id, false);
            let unexpected = before != Some(true);
            violations.extend(unexpected.then(|| not_open(format!("tool {}", tool.tool_use_id))));
        }
        Body::ToolFailed(tool) => {
            let before = state.tools.insert(tool.tool_use_id, false);
            if before == Some(false) {
                violations.push(not_open(format!("tool {}", tool.tool_use_id)));
            } else if before.is_some() != tool.called {
                let subject = format!("tool.failed of {}", tool.tool_use_id);
                violations.push(Violation::CalledFlag {
                    session,
                    subject,
                    id,
                    called: tool.called,
                });
            }
        }
        Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
            end_turn(session, turn, state, event, violations)
        }
        _ => {}
    }
}

fn close_call(
    state: &mut TurnState,
    call: CallId,
    violations: &mut Vec<Violation>,
    not_open: impl Fn(String) -> Violation,
) {
    let before = state.open_calls.len();
    state.open_calls.retain(|&open| open != call);
    if state.open_calls.len() == before {
        violations.push(not_open(format!("model call {call}")));
    }
}

fn end_turn(
    session: SessionId,
    turn: TurnId,
    state: &mut TurnState,
    event: &Event,
    violations: &mut Vec<Violation>,
) {
    let (id, kind) = (event.id, event.body.kind());
    let cancelled = matches!(event.body, Body::TurnCancelled(_));
    if state.cancel_requested.is_some() != cancelled {
        violations.push(Violation::CancelNotKept {
            session,
            turn,
            kind,
            id,
        });
    }
    let open_calls = state
        .open_calls
        .iter()
        .map(|call| format!("model call {call}"));
    let tools = state.tools.iter().filter(|(_, open)| **open);
    let tools = tools.map(|(tool, _)| format!("tool {tool}"));
    for subject in open_calls.chain(tools) {
        violations.push(Violation::LeftOpen {
            session,
            turn,
            subject,
        });
    }
    state.ended = Some(id);
}

/// Checks the transient events of a client (law 8, I3): none outside its turn, and no message
/// start after the cancel request.
pub(super) fn check_transient(
    log: &ParsedLog<'_>,
    ends: &TurnEnds,
    client: &ParsedClient<'_>,
    violations: &mut Vec<Violation>,
) {
    let session = log.id;
    for item in client.streams.iter().flat_map(|s| &s.items) {
        let StreamItem::Event(_, _, event) = item else {
            continue;
        };
        let (id, kind) = (event.id, event.body.kind());
        let Some(turn) = event.turn_id.filter(|_| !kind.is_persisted()) else {
            continue;
        };
        if !ends.started(turn) {
            violations.push(Violation::OutsideTurn {
                session,
                turn,
                id,
                kind,
            });
        }
        if ends.ended(turn).is_some_and(|end_turn| id > end_turn) {
            violations.push(Violation::AfterTerminal {
                session,
                turn,
                id,
                kind,
            });
        }
        if let Some(cancel_requested) = ends.cancel_requested(turn)
            && id > cancel_requested
            && kind.is_start()
        {
            violations.push(Violation::StartedAfterCancel {
                session,
                turn,
                kind,
                id,
                cancel_requested,
            });
        }
    }
}
