//! Questions whether a tool may act, and the turn that goes on with the answers.

use std::sync::Arc;

use turnwire_event::code::{ApprovalState, Decision, OnDisconnect, ToolState, ToolType, TurnKind};
use turnwire_event::row::RowChange;
use turnwire_event::{ApprovalId, ToolUseId, TurnId, Ulid};

use super::queue::rows;
use super::{Maker, owner};
use crate::store::Store;

pub(super) fn run(make: &dyn Fn() -> Arc<dyn Store>) {
    a_question_is_asked_and_answered_once(make().as_ref());
    one_turn_at_most_goes_on_with_another(make().as_ref());
}

const PAUSED: TurnId = TurnId(Ulid(10));

fn ask(n: u128) -> [RowChange; 2] {
    [
        RowChange::ToolCall {
            tool_use_id: ToolUseId(Ulid(n)),
            turn_id: PAUSED,
            tool_name: "pay".into(),
            tool_type: ToolType::Function,
            status: ToolState::Pending,
        },
        RowChange::ApprovalPut {
            approval_id: ApprovalId(Ulid(n)),
            turn_id: PAUSED,
            tool_use_id: ToolUseId(Ulid(n)),
            tool_name: "pay".into(),
            input_summary: "{}".into(),
        },
    ]
}

fn answer(n: u128, decision: Decision, comment: Option<&str>) -> RowChange {
    RowChange::ApprovalResolved {
        approval_id: ApprovalId(Ulid(n)),
        decision,
        by: "user".into(),
        comment: comment.map(str::to_owned),
    }
}

fn a_question_is_asked_and_answered_once(store: &dyn Store) {
    let mut maker = Maker::new(1);
    store
        .append(&[maker.turn_started(PAUSED)])
        .expect("a start");
    let asked = [ask(1), ask(2)].concat();
    store.append(&[rows(&maker, asked)]).expect("questions");
    let open = store.open_approvals(maker.session).expect("a read");
    assert_eq!(open.len(), 2);
    let answers = vec![
        answer(1, Decision::Reject, Some("too dear")),
        answer(1, Decision::Approve, None),
    ];
    store.append(&[rows(&maker, answers)]).expect("answers");
    let (of, row) = store
        .approval(ApprovalId(Ulid(1)))
        .expect("a read")
        .expect("a question");
    assert_eq!(of, owner("local"));
    assert_eq!(row.state, ApprovalState::Rejected, "the first answer holds");
    assert_eq!(row.by.as_deref(), Some("user"));
    assert_eq!(row.comment.as_deref(), Some("too dear"));
    let states: Vec<_> = store
        .turn_tool_calls(PAUSED)
        .expect("a read")
        .iter()
        .map(|tool| tool.status)
        .collect();
    assert_eq!(states, [ToolState::Cancelled, ToolState::Pending]);
    let open = store.open_approvals(maker.session).expect("a read");
    assert_eq!(open.len(), 1);
    assert_eq!(store.approvals(PAUSED).expect("a read").len(), 2);
    store.delete(maker.session).expect("gone");
    assert_eq!(store.approvals(PAUSED).expect("a read"), []);
}

fn one_turn_at_most_goes_on_with_another(store: &dyn Store) {
    let mut maker = Maker::new(1);
    store
        .append(&[maker.turn_started(PAUSED)])
        .expect("a start");
    assert_eq!(store.leg(PAUSED).expect("a read"), None);
    let start = |turn: u128| RowChange::TurnStarted {
        turn_id: TurnId(Ulid(turn)),
        kind: TurnKind::Chat,
        on_disconnect: OnDisconnect::Continue,
        disconnect_grace_ms: 0,
        trace: None,
        wire_version: None,
        agent_definition: String::new(),
        resumes: Some(PAUSED),
    };
    store
        .append(&[rows(&maker, vec![start(11)])])
        .expect("a leg");
    let leg = store.leg(PAUSED).expect("a read").expect("a leg");
    assert_eq!((leg.id, leg.resumes), (TurnId(Ulid(11)), Some(PAUSED)));
    assert!(store.append(&[rows(&maker, vec![start(12)])]).is_err());
}
