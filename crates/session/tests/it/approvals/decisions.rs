//! Paused turns and decisions on them: applied once, however often they are sent, also after a crash.

use turnwire_event::code::{ApprovalState, ToolState, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::{ApprovalId, Body, Message, Role, Ulid};
use turnwire_session::{ApprovalDecision, ApprovalOutcome, Error, SubmitRequest};

use crate::stage::*;

// D-81
#[tokio::test]
async fn approval_starts_the_resuming_turn_and_runs_the_tool_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, sessions) = approval_service(dir.path()).await;
    let approvals = SubmitRequest {
        locale: "de-AT".into(),
        wire_version: "0.4".into(),
        location: Some("Graz".into()),
        ..with_metadata("1", &serde_json::json!({"theme": "dark"}))
    };
    let (id, turn) = pause_turn(&sessions, approvals).await;
    let row = sessions
        .reader()
        .turn(&owner("local"), turn)
        .await
        .expect("a turn");
    let (_, terminal) = row.terminal.expect("it has ended");
    assert_eq!(terminal["status"], "paused");
    assert_eq!(tool_states(&sessions, id).await, [ToolState::Pending]);
    let approvals = approvals_of(&sessions, turn).await;
    assert_eq!(approvals[0].state, ApprovalState::Pending);
    let done = decide(&sessions, turn, vec![approve(&approvals[0])]).await;
    let done = done.expect("accepted");
    let resuming = done.next.expect("a resuming turn");
    assert_eq!(done.remaining, 0);
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(resuming_turns(&events, turn), [resuming]);
    assert_eq!(*recorder.done.lock(), [approvals[0].tool_use_id]);
    assert_eq!(tool_states(&sessions, id).await, [ToolState::Completed]);
    // The resuming turn has the request of the paused turn without its content.
    let input = recorder.inputs.lock()[1].clone();
    assert_eq!((input.turn_id, input.content.len()), (resuming, 0));
    assert_eq!(input.locale, "de-AT");
    assert_eq!(input.location.as_deref(), Some("Graz"));
    assert_eq!(
        serde_json::json!(input.metadata),
        serde_json::json!({"theme": "dark"})
    );
    let resumed = input.resumed.expect("it goes on");
    assert_eq!(resumed.turn_id, turn);
    assert_eq!(resumed.answers[0].tool_type, ToolType::Http);
    let row = sessions
        .reader()
        .turn(&owner("local"), resuming)
        .await
        .expect("a turn");
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.resumes, Some(turn));
    // The same decision again returns the same; another decision and an unknown approval are refused.
    let again = decide(&sessions, turn, vec![approve(&approvals[0])]).await;
    assert_eq!(again, Ok(done));
    let other = decide(&sessions, turn, vec![reject(&approvals[0])]).await;
    assert_eq!(other, Err(Error::ApprovalResolved(approvals[0].id)));
    let unknown = ApprovalDecision {
        approval_id: ApprovalId(Ulid(1)),
        ..approve(&approvals[0])
    };
    let unknown = decide(&sessions, turn, vec![unknown]).await;
    assert_eq!(unknown, Err(Error::ApprovalNotFound));
    let eve = owner("eve");
    let handle = sessions.approvals();
    let stranger = handle.decide(&eve, turn, vec![approve(&approvals[0])], None);
    assert_eq!(stranger.await, Err(Error::TurnNotFound));
    let never = decide(&sessions, resuming, vec![approve(&approvals[0])]).await;
    assert_eq!(never, Err(Error::TurnNotPaused));
    assert_eq!(
        resolved_approvals(&wait_for_terminals(&sessions, id, 2).await).len(),
        1
    );
}

#[tokio::test]
async fn rejection_resumes_too_and_clients_read_its_message() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, sessions) = approval_service(dir.path()).await;
    let (id, turn) = pause_turn(&sessions, text_request("1")).await;
    let approvals = approvals_of(&sessions, turn).await;
    let refusal = ApprovalDecision {
        comment: Some("too dear".into()),
        ..reject(&approvals[0])
    };
    decide(&sessions, turn, vec![refusal])
        .await
        .expect("accepted");
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_eq!(*recorder.done.lock(), []);
    assert_eq!(tool_states(&sessions, id).await, [ToolState::Cancelled]);
    let resumed = recorder.inputs.lock()[1]
        .resumed
        .clone()
        .expect("it goes on");
    assert_eq!(resumed.answers[0].comment.as_deref(), Some("too dear"));
    let failed = events.iter().find_map(|event| match &event.body {
        Body::ToolFailed(failed) => Some(failed),
        _ => None,
    });
    assert!(!failed.expect("it failed").called);
    let listed = sessions
        .reader()
        .messages(&owner("local"), id, None, 100)
        .await;
    let listed = listed.expect("messages").0;
    let silent: Vec<&Message> = listed
        .iter()
        .filter(|message| message.content.is_empty())
        .collect();
    assert_eq!(silent.len(), 1);
    assert_eq!(silent[0].role, Role::User);
    let resumed_turn = silent[0].metadata.get_str("resumes");
    assert_eq!(resumed_turn, Some(turn.to_string()));
}

#[tokio::test]
async fn decisions_are_applied_atomically_and_survive_a_crash() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, first) = approval_service(dir.path()).await;
    let (id, turn) = pause_turn(&first, text_request("3")).await;
    let approvals = approvals_of(&first, turn).await;
    // One invalid decision refuses all.
    let unknown = ApprovalDecision {
        approval_id: ApprovalId(Ulid(1)),
        ..approve(&approvals[0])
    };
    let invalid = decide(&first, turn, vec![approve(&approvals[0]), unknown]).await;
    assert_eq!(invalid, Err(Error::ApprovalNotFound));
    let torn = decide(
        &first,
        turn,
        vec![approve(&approvals[0]), reject(&approvals[0])],
    )
    .await;
    assert_eq!(torn, Err(Error::ApprovalResolved(approvals[0].id)));
    let part = ApprovalOutcome {
        remaining: 2,
        next: None,
    };
    let refusal = ApprovalDecision {
        comment: Some("not this one".into()),
        ..reject(&approvals[1])
    };
    let outcome = decide(&first, turn, vec![refusal]).await;
    assert_eq!(outcome, Ok(part));
    let image = copy_store(dir.path());
    let (recorder, after) = approval_service(image.path()).await;
    let outcome = decide(&after, turn, vec![reject(&approvals[1])]).await;
    assert_eq!(outcome, Ok(part), "the same again, after a crash");
    let both = vec![approve(&approvals[2]), approve(&approvals[0])];
    let done = decide(&after, turn, both).await.expect("accepted");
    let events = wait_for_terminals(&after, id, 2).await;
    assert_eq!(
        resuming_turns(&events, turn),
        [done.next.expect("a resuming turn")]
    );
    assert_eq!(
        *recorder.done.lock(),
        [approvals[0].tool_use_id, approvals[2].tool_use_id]
    );
    let resumed = recorder.inputs.lock()[0]
        .resumed
        .clone()
        .expect("it goes on");
    let comments: Vec<_> = resumed
        .answers
        .iter()
        .map(|answer| answer.comment.as_deref())
        .collect();
    assert_eq!(comments, [None, Some("not this one"), None]);
    // The resuming turn reads the whole paused turn regardless of the budget, also after the crash.
    let past = recorder.pasts.lock()[0].clone();
    let roles: Vec<Role> = past.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
}

#[tokio::test]
async fn concurrent_decisions_start_one_resuming_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, sessions) = approval_service(dir.path()).await;
    for round in 0..10 {
        let (id, turn) = pause_turn(&sessions, text_request("2")).await;
        let approvals = approvals_of(&sessions, turn).await;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..6 {
            let (sessions, approvals) = (sessions.clone(), approvals.clone());
            tasks.spawn(async move {
                let decisions = match n % 3 {
                    0 => vec![approve(&approvals[0])],
                    1 => vec![approve(&approvals[1])],
                    _ => vec![approve(&approvals[1]), approve(&approvals[0])],
                };
                decide(&sessions, turn, decisions).await.expect("accepted")
            });
        }
        let outcomes = tasks.join_all().await;
        let events = wait_for_terminals(&sessions, id, 2).await;
        assert_each_ends_once(&events);
        let resuming = resuming_turns(&events, turn);
        assert_eq!(resuming.len(), 1);
        assert_eq!(resolved_approvals(&events).len(), 2);
        for resumed in outcomes {
            let next = (resumed.remaining == 0).then_some(resuming[0]);
            assert_eq!(resumed.next, next);
        }
        assert_eq!(recorder.done.lock().len(), 2 * (round + 1));
    }
}

#[tokio::test]
async fn second_pause_resumes_with_all_messages_of_the_chain() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, sessions) = approval_service(dir.path()).await;
    let metadata = serde_json::json!({"again": true});
    let (id, mut turn) = pause_turn(&sessions, with_metadata("2", &metadata)).await;
    for round in 2..5 {
        let decisions = approvals_of(&sessions, turn)
            .await
            .iter()
            .map(approve)
            .collect();
        let done = decide(&sessions, turn, decisions).await.expect("accepted");
        turn = done.next.expect("a resuming turn");
        wait_for_terminals(&sessions, id, round).await;
    }
    assert_each_ends_once(&wait_for_terminals(&sessions, id, 4).await);
    assert_eq!(recorder.done.lock().len(), 4);
    let past = recorder.pasts.lock()[3].clone();
    assert_eq!(past[0].text(), "2", "the words that all of it is about");
    let results = past.iter().filter(|message| message.role == Role::Tool);
    assert_eq!(results.count(), 3);
    // A later turn whose budget of four messages is too small for the chain reads none of it.
    let next = submit(&sessions, &owner("local"), id, text_request("hello")).await;
    next.expect("accepted");
    wait_for_terminals(&sessions, id, 5).await;
    let past = recorder.pasts.lock()[4].clone();
    assert_eq!(message_texts(&past), ["hello"]);
}

#[tokio::test]
async fn decision_on_another_input_changes_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, sessions) = approval_service(dir.path()).await;
    let (_, turn) = pause_turn(&sessions, text_request("1")).await;
    // The request has no digest, as one of an older release: it is computed from the message.
    let approvals = approvals_of(&sessions, turn).await;
    let digest = sha256_hex(b"{}");
    assert_eq!(approvals[0].input_sha256.as_ref(), Some(&digest));
    let handle = sessions.approvals();
    let (_, input) = handle
        .read(&owner("local"), turn, approvals[0].id)
        .await
        .expect("an approval");
    assert_eq!(input.as_deref(), Some("{}"));
    let eve = handle.read(&owner("eve"), turn, approvals[0].id).await;
    assert_eq!(eve, Err(Error::TurnNotFound));
    let with = |digest: String| ApprovalDecision {
        input_sha256: Some(digest),
        ..approve(&approvals[0])
    };
    let other = decide(&sessions, turn, vec![with(sha256_hex(b"[]"))]).await;
    assert_eq!(other, Err(Error::ApprovalInputMismatch(approvals[0].id)));
    let approvals_after = approvals_of(&sessions, turn).await;
    assert_eq!(approvals_after[0].state, ApprovalState::Pending);
    let done = decide(&sessions, turn, vec![with(digest)]).await;
    assert_eq!(done.expect("applied").remaining, 0);
}
