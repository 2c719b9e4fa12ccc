//! Turns that wait for a person: answered once, whoever asks how often, over the end of a process
//! too.

use turnwire_event::code::{ApprovalState, ToolState, ToolType};
use turnwire_event::{ApprovalId, Body, Message, Role, Ulid};
use turnwire_session::{ApprovalDecision, ApprovalOutcome, Error, SubmitRequest};

use crate::stage::*;

// D-81
#[tokio::test]
async fn approval_starts_the_resuming_turn_and_runs_the_tool_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = asked_service(dir.path()).await;
    let asked = SubmitRequest {
        locale: "de-AT".into(),
        wire_version: "0.4".into(),
        location: Some("Graz".into()),
        ..with("1", &serde_json::json!({"theme": "dark"}))
    };
    let (id, turn) = paused(&sessions, asked).await;
    let row = sessions
        .reader()
        .turn(&owner("local"), turn)
        .await
        .expect("a turn");
    let (_, terminal) = row.terminal.expect("it has ended");
    assert_eq!(terminal["status"], "paused");
    assert_eq!(tools(&sessions, id).await, [ToolState::Pending]);
    let asked = questions(&sessions, turn).await;
    assert_eq!(asked[0].state, ApprovalState::Pending);
    let done = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    let done = done.expect("taken");
    let leg = done.next.expect("a leg");
    assert_eq!(done.remaining, 0);
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(legs(&events, turn), [leg]);
    assert_eq!(*book.done.lock(), [asked[0].tool_use_id]);
    assert_eq!(tools(&sessions, id).await, [ToolState::Completed]);
    // The leg is told what the paused turn was told, but no words.
    let input = book.inputs.lock()[1].clone();
    assert_eq!((input.turn_id, input.content.len()), (leg, 0));
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
        .turn(&owner("local"), leg)
        .await
        .expect("a turn");
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.resumes, Some(turn));
    // The same again is the same; the other is refused; so is what nobody asked.
    let again = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again, Ok(done));
    let other = answer(&sessions, turn, vec![no(&asked[0])]).await;
    assert_eq!(other, Err(Error::ApprovalResolved(asked[0].id)));
    let unknown = ApprovalDecision {
        approval_id: ApprovalId(Ulid(1)),
        ..yes(&asked[0])
    };
    let unknown = answer(&sessions, turn, vec![unknown]).await;
    assert_eq!(unknown, Err(Error::ApprovalNotFound));
    let eve = owner("eve");
    let approvals = sessions.approvals();
    let stranger = approvals.decide(&eve, turn, vec![yes(&asked[0])], None);
    assert_eq!(stranger.await, Err(Error::TurnNotFound));
    let never = answer(&sessions, leg, vec![yes(&asked[0])]).await;
    assert_eq!(never, Err(Error::TurnNotPaused));
    assert_eq!(resolved(&ended(&sessions, id, 2).await).len(), 1);
}

#[tokio::test]
async fn rejection_resumes_too_and_clients_read_its_message() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = asked_service(dir.path()).await;
    let (id, turn) = paused(&sessions, say("1")).await;
    let asked = questions(&sessions, turn).await;
    let refusal = ApprovalDecision {
        comment: Some("too dear".into()),
        ..no(&asked[0])
    };
    answer(&sessions, turn, vec![refusal]).await.expect("taken");
    let events = ended(&sessions, id, 2).await;
    assert_eq!(*book.done.lock(), []);
    assert_eq!(tools(&sessions, id).await, [ToolState::Cancelled]);
    let told = book.inputs.lock()[1].resumed.clone().expect("it goes on");
    assert_eq!(told.answers[0].comment.as_deref(), Some("too dear"));
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
    assert_eq!(silent[0].metadata["resumes"], turn.to_string());
}

#[tokio::test]
async fn decisions_are_applied_atomically_and_survive_a_crash() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, first) = asked_service(dir.path()).await;
    let (id, turn) = paused(&first, say("3")).await;
    let asked = questions(&first, turn).await;
    // One bad word spoils the lot.
    let unknown = ApprovalDecision {
        approval_id: ApprovalId(Ulid(1)),
        ..yes(&asked[0])
    };
    let none = answer(&first, turn, vec![yes(&asked[0]), unknown]).await;
    assert_eq!(none, Err(Error::ApprovalNotFound));
    let torn = answer(&first, turn, vec![yes(&asked[0]), no(&asked[0])]).await;
    assert_eq!(torn, Err(Error::ApprovalResolved(asked[0].id)));
    let part = ApprovalOutcome {
        remaining: 2,
        next: None,
    };
    let refusal = ApprovalDecision {
        comment: Some("not this one".into()),
        ..no(&asked[1])
    };
    let taken = answer(&first, turn, vec![refusal]).await;
    assert_eq!(taken, Ok(part));
    let image = crashed(dir.path());
    let (book, after) = asked_service(image.path()).await;
    let taken = answer(&after, turn, vec![no(&asked[1])]).await;
    assert_eq!(taken, Ok(part), "the same again, after a crash");
    let both = vec![yes(&asked[2]), yes(&asked[0])];
    let done = answer(&after, turn, both).await.expect("taken");
    let events = ended(&after, id, 2).await;
    assert_eq!(legs(&events, turn), [done.next.expect("a leg")]);
    assert_eq!(
        *book.done.lock(),
        [asked[0].tool_use_id, asked[2].tool_use_id]
    );
    let told = book.inputs.lock()[0].resumed.clone().expect("it goes on");
    let comments: Vec<_> = told
        .answers
        .iter()
        .map(|answer| answer.comment.as_deref())
        .collect();
    assert_eq!(comments, [None, Some("not this one"), None]);
    // The leg is shown all of the paused turn, whatever the budget says, and after the crash too.
    let past = book.pasts.lock()[0].clone();
    let roles: Vec<Role> = past.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
}

#[tokio::test]
async fn concurrent_decisions_start_one_resuming_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = asked_service(dir.path()).await;
    for round in 0..10 {
        let (id, turn) = paused(&sessions, say("2")).await;
        let asked = questions(&sessions, turn).await;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..6 {
            let (sessions, asked) = (sessions.clone(), asked.clone());
            tasks.spawn(async move {
                let words = match n % 3 {
                    0 => vec![yes(&asked[0])],
                    1 => vec![yes(&asked[1])],
                    _ => vec![yes(&asked[1]), yes(&asked[0])],
                };
                answer(&sessions, turn, words).await.expect("taken")
            });
        }
        let said = tasks.join_all().await;
        let events = ended(&sessions, id, 2).await;
        assert_each_ends_once(&events);
        let legs = legs(&events, turn);
        assert_eq!(legs.len(), 1);
        assert_eq!(resolved(&events).len(), 2);
        for told in said {
            let next = (told.remaining == 0).then_some(legs[0]);
            assert_eq!(told.next, next);
        }
        assert_eq!(book.done.lock().len(), 2 * (round + 1));
    }
}

#[tokio::test]
async fn second_pause_resumes_with_all_messages_of_the_chain() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = asked_service(dir.path()).await;
    let metadata = serde_json::json!({"again": true});
    let (id, mut turn) = paused(&sessions, with("2", &metadata)).await;
    for round in 2..5 {
        let words = questions(&sessions, turn).await.iter().map(yes).collect();
        let done = answer(&sessions, turn, words).await.expect("taken");
        turn = done.next.expect("a leg");
        ended(&sessions, id, round).await;
    }
    assert_each_ends_once(&ended(&sessions, id, 4).await);
    assert_eq!(book.done.lock().len(), 4);
    let past = book.pasts.lock()[3].clone();
    assert_eq!(past[0].text(), "2", "the words that all of it is about");
    let results = past.iter().filter(|message| message.role == Role::Tool);
    assert_eq!(results.count(), 3);
    // A later turn that cannot be shown all of it is shown none of it: four messages are its most.
    let next = submit(&sessions, &owner("local"), id, say("hello")).await;
    next.expect("accepted");
    ended(&sessions, id, 5).await;
    let past = book.pasts.lock()[4].clone();
    assert_eq!(texts(&past), ["hello"]);
}
