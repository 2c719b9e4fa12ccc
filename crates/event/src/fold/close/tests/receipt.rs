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
            reason,
            asked,
            stops,
        };
        let ending = closing(&open, &end, time(1000));
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
            (ReceiptKind::Subagent, "shop".to_owned(), own, 12),
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
            outcome: StopOutcome::Killed,
            ms: 90,
        },
    };
    let end = CloseCause::Cancelled {
        reason,
        asked,
        stops: Some(StopSummary {
            let_go_ms: 12,
            left_behind: false,
            child_tasks: vec![ward],
        }),
    };
    let ending = closing(&open, &end, time(1000));
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
