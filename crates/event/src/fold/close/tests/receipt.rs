//! What a receipt says of processes and workers, and of what did not let go.

use super::*;
use crate::id::SessionId;

#[test]
fn tool_takes_its_worst_child_outcome() {
    let (open, end) = cancelled();
    let ward = |id: &str, tool, outcome, ms| StoppedTask {
        tool_use_id: tool,
        line: ReceiptLine {
            kind: ReceiptKind::Process,
            id: id.to_owned(),
            name: "search".into(),
            outcome,
            ms,
        },
    };
    let lines = |left_behind| {
        let CloseCause::Cancelled { reason, asked, .. } = end.clone() else {
            panic!("a cancel");
        };
        let wards = vec![
            ward("1", ASK_SHOP, StopOutcome::Killed, 90),
            ward("2", ASK_SHOP, StopOutcome::Stopped, 95),
            ward("3", ASK_REWARDS, StopOutcome::Discarded, 7),
            ward("4", SEARCH, StopOutcome::Finished, 2),
        ];
        let stops = Some(StopSummary {
            let_go_ms: 12,
            left_behind,
            child_tasks: wards,
        });
        let end = CloseCause::Cancelled {
            code: CancelCode::RequestCancelled,
            reason,
            asked,
            stops,
        };
        let ending = closing(&open, &end, &[], time(1000));
        let Some(Body::TurnCancelled(cancelled)) = ending.last().map(|c| &c.body) else {
            panic!("{ending:?}");
        };
        let lines = cancelled.receipt.iter();
        lines
            .map(|line| (line.kind, line.id.clone(), line.outcome, line.ms))
            .collect::<Vec<_>>()
    };
    let (stopped, killed, thrown) = (
        StopOutcome::Stopped,
        StopOutcome::Killed,
        StopOutcome::Discarded,
    );
    let expected = |own| {
        [
            (ReceiptKind::Llm, CALL.to_string(), own, 12),
            // Whatever is left behind is worse than what was killed.
            (
                ReceiptKind::Tool,
                ASK_SHOP.to_string(),
                if own == thrown { thrown } else { killed },
                95,
            ),
            (ReceiptKind::Tool, ASK_REWARDS.to_string(), thrown, 12),
            (ReceiptKind::Tool, SEARCH.to_string(), thrown, 12),
            (ReceiptKind::Process, "1".to_owned(), killed, 90),
            (ReceiptKind::Process, "2".to_owned(), stopped, 95),
            (ReceiptKind::Process, "3".to_owned(), thrown, 7),
            (
                ReceiptKind::Process,
                "4".to_owned(),
                StopOutcome::Finished,
                2,
            ),
            (
                ReceiptKind::Subagent,
                InvocationId(ASK_SHOP.0).to_string(),
                own,
                12,
            ),
        ]
    };
    assert_eq!(lines(false), expected(stopped));
    assert_eq!(lines(true), expected(thrown));
}

// S3-081
#[test]
fn every_worker_has_one_receipt_line() {
    let (mut open, end) = cancelled();
    let workers = [SessionId(Ulid(31)), SessionId(Ulid(32))];
    for worker_session_id in workers {
        open.delegates.push(OpenDelegate {
            worker_session_id,
            tool_use_id: SEARCH,
            at: Position::persisted(Epoch(1), Seq(9)),
        });
    }
    let CloseCause::Cancelled { reason, asked, .. } = end else {
        panic!("a cancel");
    };
    let ward = StoppedTask {
        tool_use_id: SEARCH,
        line: ReceiptLine {
            kind: ReceiptKind::Worker,
            id: workers[0].to_string(),
            name: "search".into(),
            outcome: StopOutcome::Killed,
            ms: 90,
        },
    };
    let end = CloseCause::Cancelled {
        code: CancelCode::RequestCancelled,
        reason,
        asked,
        stops: Some(StopSummary {
            let_go_ms: 12,
            left_behind: false,
            child_tasks: vec![ward],
        }),
    };
    let ending = closing(&open, &end, &[], time(1000));
    let Some(Body::TurnCancelled(cancelled)) = ending.last().map(|c| &c.body) else {
        panic!("{ending:?}");
    };
    let lines = cancelled.receipt.iter();
    let lines = lines.filter(|line| line.kind == ReceiptKind::Worker);
    let lines: Vec<_> = lines
        .map(|line| (line.id.clone(), line.outcome, line.ms))
        .collect();
    let [seen, unseen] = workers.map(|worker| worker.to_string());
    assert_eq!(
        lines,
        [
            (seen, StopOutcome::Killed, 90),
            (unseen, StopOutcome::Stopped, 12)
        ]
    );
}

// S3-081
#[test]
fn event_and_receipt_of_a_worker_agree_with_its_end() {
    use crate::body::delegate::DelegateCompleted;
    let workers = [31, 32, 33].map(|id| SessionId(Ulid(id)));
    let ends = [
        DelegateEnd::Completed(DelegateCompleted {
            worker_session_id: workers[0],
            success: true,
            summary: "done".into(),
        }),
        DelegateEnd::Failed(DelegateFailed {
            worker_session_id: workers[1],
            failure_mode: FailureMode::Timeout,
        }),
    ];
    let (mut open, end) = cancelled();
    for worker_session_id in workers {
        open.delegates.push(OpenDelegate {
            worker_session_id,
            tool_use_id: SEARCH,
            at: Position::persisted(Epoch(1), Seq(9)),
        });
    }
    for (end, stopped) in [
        (end, FailureMode::CancelledByUser),
        (failed(), FailureMode::Error),
    ] {
        let ending = closing(&open, &end, &ends, time(1000));
        let reported: Vec<_> = ending
            .iter()
            .filter(|event| event.actor.kind() == ActorKind::Worker)
            .map(|event| event.body.clone())
            .collect();
        let stopped = DelegateEnd::Failed(DelegateFailed {
            worker_session_id: workers[2],
            failure_mode: stopped,
        });
        let expected = ends.iter().cloned().chain([stopped]);
        let expected: Vec<_> = expected.map(DelegateEnd::into_body).collect();
        assert_eq!(reported, expected);
        let Some(Body::TurnCancelled(cancelled)) = ending.last().map(|c| &c.body) else {
            continue;
        };
        let lines = cancelled.receipt.iter();
        let lines = lines.filter(|line| line.kind == ReceiptKind::Worker);
        let lines: Vec<_> = lines
            .map(|line| (&*line.name, line.outcome, line.ms > 0))
            .collect();
        let finished = ("search", StopOutcome::Finished, false);
        let stopped = ("search", StopOutcome::Stopped, true);
        assert_eq!(lines, [finished, finished, stopped]);
    }
}

#[test]
fn two_invocations_of_one_sub_agent_have_lines_of_their_own() {
    let (mut open, end) = cancelled();
    let second = ToolUseId(Ulid(14));
    let at = Position::persisted(Epoch(1), Seq(21));
    open.apply(
        at,
        time(101),
        &Actor::ORCHESTRATOR,
        &started("shop", second),
    );
    let mut line_ids = Vec::new();
    let ended = completed("shop", second);
    for end_second in [false, true] {
        if end_second {
            open.apply(at, time(102), &Actor::subagent("shop"), &ended);
        }
        let ending = closing(&open, &end, &[], time(130));
        let Some(Body::TurnCancelled(cancelled)) = ending.last().map(|c| &c.body) else {
            panic!("{ending:?}");
        };
        let lines = cancelled.receipt.iter();
        let lines = lines.filter(|line| line.kind == ReceiptKind::Subagent);
        let lines = lines.map(|line| (line.id.clone(), &*line.name == "shop"));
        let mut lines: Vec<_> = lines.collect();
        lines.sort();
        line_ids.push(lines);
    }
    let both = [ASK_SHOP, second].map(|tool| (InvocationId(tool.0).to_string(), true));
    assert_eq!(line_ids, [both.clone(), both]);
}
