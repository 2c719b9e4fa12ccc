//! Approval requests and their decisions, and the turn that resumes a paused one.

use std::sync::Arc;

use turnwire_event::body::approval::{ApprovalRequested, ApprovalResolved};
use turnwire_event::code::{ApprovalState, Decision, ToolState, ToolType};
use turnwire_event::row::RowChange;
use turnwire_event::{ApprovalId, ToolUseId, TurnId, Ulid};

use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, turn_started};

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    approval_keeps_its_first_decision(create().as_ref());
    paused_turn_is_resumed_once(create().as_ref());
}

const PAUSED: TurnId = TurnId(Ulid(10));

fn request(n: u128) -> [RowChange; 2] {
    [
        RowChange::ToolCall {
            tool_use_id: ToolUseId(Ulid(n)),
            turn_id: PAUSED,
            tool_name: "pay".into(),
            tool_type: ToolType::Function,
            status: ToolState::Pending,
        },
        RowChange::ApprovalPut(
            PAUSED,
            ApprovalRequested {
                approval_id: ApprovalId(Ulid(n)),
                tool_use_id: ToolUseId(Ulid(n)),
                tool_name: "pay".into(),
                input_summary: "{}".into(),
                input_truncated: false,
                input_bytes: Some(2),
                input_sha256: Some("e3".into()),
            },
        ),
    ]
}

fn decide(n: u128, decision: Decision, comment: Option<&str>) -> RowChange {
    RowChange::ApprovalResolved(ApprovalResolved {
        approval_id: ApprovalId(Ulid(n)),
        decision,
        by: "user".into(),
        comment: comment.map(str::to_owned),
    })
}

fn approval_keeps_its_first_decision(store: &dyn Store) {
    let mut builder = BatchBuilder::new(1);
    store
        .append(&[builder.turn_started(PAUSED)])
        .expect("a start");
    let requests = [request(1), request(2)].concat();
    store.append(&[builder.rows(requests)]).expect("requests");
    let open = store.open_approvals(builder.session).expect("a read");
    assert_eq!(open.len(), 2);
    assert_eq!(
        (open[0].input_bytes, open[0].input_sha256.as_deref()),
        (Some(2), Some("e3"))
    );
    let decisions = vec![
        decide(1, Decision::Reject, Some("too dear")),
        decide(1, Decision::Approve, None),
    ];
    store.append(&[builder.rows(decisions)]).expect("decisions");
    let rows = store.turn_approvals(PAUSED).expect("a read");
    let row = &rows[0];
    assert_eq!(row.id, ApprovalId(Ulid(1)));
    assert_eq!(
        row.state,
        ApprovalState::Rejected,
        "the first decision counts"
    );
    assert_eq!(row.by.as_deref(), Some("user"));
    assert_eq!(row.comment.as_deref(), Some("too dear"));
    let states: Vec<_> = store
        .turn_tool_calls(PAUSED)
        .expect("a read")
        .iter()
        .map(|tool| tool.status)
        .collect();
    assert_eq!(states, [ToolState::Cancelled, ToolState::Pending]);
    let open = store.open_approvals(builder.session).expect("a read");
    assert_eq!(open.len(), 1);
    assert_eq!(store.turn_approvals(PAUSED).expect("a read").len(), 2);
    store.delete(&[builder.session], &[]).expect("a delete");
    assert_eq!(store.turn_approvals(PAUSED).expect("a read"), []);
}

fn paused_turn_is_resumed_once(store: &dyn Store) {
    let mut builder = BatchBuilder::new(1);
    store
        .append(&[builder.turn_started(PAUSED)])
        .expect("a start");
    assert_eq!(store.resuming_turn(PAUSED).expect("a read"), None);
    let start = |turn: u128| turn_started(TurnId(Ulid(turn)), Some(PAUSED));
    store
        .append(&[builder.rows(vec![start(11)])])
        .expect("the resuming turn");
    let resuming = store
        .resuming_turn(PAUSED)
        .expect("a read")
        .expect("the resuming turn");
    assert_eq!(
        (resuming.id, resuming.resumes),
        (TurnId(Ulid(11)), Some(PAUSED))
    );
    assert!(store.append(&[builder.rows(vec![start(12)])]).is_err());
}
