//! Turns that wait for a person: answered once, whoever asks how often, over the end of a process
//! too, and taken back when the conversation goes on without.

mod stage;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::{
    ApprovalState, Decision, ToolErrorClass, ToolState, ToolType, TurnStatus,
};
use turnwire_event::row::ApprovalRow;
use turnwire_event::{
    ApprovalId, Body, ContentBlock, Event, EventType, Message, Role, SessionId, TurnId, Ulid,
};
use turnwire_session::{Answered, Error, Options, Sessions, Submit, Word};

use stage::*;

fn yes(question: &ApprovalRow) -> Word {
    word(question, Decision::Approve)
}

fn no(question: &ApprovalRow) -> Word {
    word(question, Decision::Reject)
}

fn word(question: &ApprovalRow, decision: Decision) -> Word {
    Word {
        approval_id: question.id,
        decision,
        comment: None,
    }
}

async fn answer(
    sessions: &Arc<Sessions>,
    turn: TurnId,
    words: Vec<Word>,
) -> Result<Answered, Error> {
    sessions.answer(&owner("local"), turn, words, None).await
}

async fn questions(sessions: &Arc<Sessions>, turn: TurnId) -> Vec<ApprovalRow> {
    let asked = sessions.approvals(&owner("local"), turn).await;
    asked.expect("questions").0
}

/// A session with a turn that has asked so many questions.
async fn paused(sessions: &Arc<Sessions>, submit: Submit) -> (SessionId, TurnId) {
    let id = new_session(sessions).await;
    let turn = stage::submit(sessions, &owner("local"), id, submit).await;
    let turn = turn.expect("accepted").turn_id;
    ended(sessions, id, 1).await;
    (id, turn)
}

async fn service(dir: &Path) -> (Arc<Book>, Arc<Sessions>) {
    let (book, act) = asking();
    (book, sessions(dir, Options::default(), act).await)
}

fn with(text: &str, metadata: &serde_json::Value) -> Submit {
    Submit {
        metadata: metadata.as_object().cloned().expect("an object"),
        ..say(text)
    }
}

fn legs(events: &[Event], paused: TurnId) -> Vec<TurnId> {
    let legs = events.iter().filter(|event| match &event.body {
        Body::TurnStarted(start) => start.resumes == Some(paused),
        _ => false,
    });
    legs.filter_map(|event| event.turn_id).collect()
}

fn resolved(events: &[Event]) -> Vec<(ApprovalId, Decision, String)> {
    let answers = events.iter().filter_map(|event| match &event.body {
        Body::ApprovalResolved(answer) => {
            assert_eq!(event.turn_id, None, "an answer belongs to no turn");
            Some((answer.approval_id, answer.decision, answer.by.clone()))
        }
        _ => None,
    });
    answers.collect()
}

async fn tools(sessions: &Arc<Sessions>, id: SessionId) -> Vec<ToolState> {
    let listed = sessions.tool_calls(&owner("local"), id, None, 100).await;
    let mut listed = listed.expect("tool calls").0;
    listed.reverse();
    listed.iter().map(|tool| tool.status).collect()
}

#[tokio::test]
async fn d_81_a_yes_opens_the_next_leg_and_the_tool_acts_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = service(dir.path()).await;
    let asked = Submit {
        locale: "de-AT".into(),
        wire_version: "0.4".into(),
        location: Some("Graz".into()),
        ..with("1", &serde_json::json!({"theme": "dark"}))
    };
    let (id, turn) = paused(&sessions, asked).await;
    let row = sessions.turn(&owner("local"), turn).await.expect("a turn");
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
    let row = sessions.turn(&owner("local"), leg).await.expect("a turn");
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.resumes, Some(turn));
    // The same again is the same; the other is refused; so is what nobody asked.
    let again = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again, Ok(done));
    let other = answer(&sessions, turn, vec![no(&asked[0])]).await;
    assert_eq!(other, Err(Error::ApprovalResolved(asked[0].id)));
    let unknown = Word {
        approval_id: ApprovalId(Ulid(1)),
        ..yes(&asked[0])
    };
    let unknown = answer(&sessions, turn, vec![unknown]).await;
    assert_eq!(unknown, Err(Error::ApprovalNotFound));
    let eve = owner("eve");
    let stranger = sessions.answer(&eve, turn, vec![yes(&asked[0])], None);
    assert_eq!(stranger.await, Err(Error::TurnNotFound));
    let never = answer(&sessions, leg, vec![yes(&asked[0])]).await;
    assert_eq!(never, Err(Error::TurnNotPaused));
    assert_eq!(resolved(&ended(&sessions, id, 2).await).len(), 1);
}

#[tokio::test]
async fn a_no_goes_on_too_and_the_message_of_the_answers_is_there_for_clients() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = service(dir.path()).await;
    let (id, turn) = paused(&sessions, say("1")).await;
    let asked = questions(&sessions, turn).await;
    let refusal = Word {
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
    let listed = sessions.messages(&owner("local"), id, None, 100).await;
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
async fn several_questions_are_answered_one_by_one_over_a_crash_and_whole_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, first) = service(dir.path()).await;
    let (id, turn) = paused(&first, say("3")).await;
    let asked = questions(&first, turn).await;
    // One bad word spoils the lot.
    let unknown = Word {
        approval_id: ApprovalId(Ulid(1)),
        ..yes(&asked[0])
    };
    let none = answer(&first, turn, vec![yes(&asked[0]), unknown]).await;
    assert_eq!(none, Err(Error::ApprovalNotFound));
    let torn = answer(&first, turn, vec![yes(&asked[0]), no(&asked[0])]).await;
    assert_eq!(torn, Err(Error::ApprovalResolved(asked[0].id)));
    let part = Answered {
        remaining: 2,
        next: None,
    };
    let refusal = Word {
        comment: Some("not this one".into()),
        ..no(&asked[1])
    };
    let taken = answer(&first, turn, vec![refusal]).await;
    assert_eq!(taken, Ok(part));
    let image = crashed(dir.path());
    let (book, after) = service(image.path()).await;
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
async fn two_answers_at_once_open_one_leg() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = service(dir.path()).await;
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
async fn another_message_takes_the_questions_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, first) = service(dir.path()).await;
    let (id, turn) = paused(&first, say("2")).await;
    let asked = questions(&first, turn).await;
    // One was answered; that it was does not help the tool.
    answer(&first, turn, vec![yes(&asked[0])])
        .await
        .expect("taken");
    let image = crashed(dir.path());
    drop((first, book));
    let (book, after) = service(image.path()).await;
    let next = submit(&after, &owner("local"), id, say("never mind")).await;
    let next = next.expect("accepted").turn_id;
    let events = ended(&after, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(
        resolved(&events),
        [
            (asked[0].id, Decision::Approve, "user".to_owned()),
            (asked[1].id, Decision::Reject, "system".to_owned()),
        ]
    );
    let kinds: Vec<EventType> = events.iter().map(|event| event.body.kind()).collect();
    let at = |kind: EventType| kinds.iter().rposition(|it| *it == kind).expect("there");
    assert_eq!(
        at(EventType::ApprovalResolved) + 1,
        at(EventType::TurnStarted)
    );
    assert_eq!(legs(&events, turn), []);
    assert_eq!(*book.done.lock(), []);
    for word in [no(&asked[1]), yes(&asked[1])] {
        let late = answer(&after, turn, vec![word]).await;
        assert_eq!(late, Err(Error::ApprovalResolved(asked[1].id)));
    }
    // A model is told that nobody allowed it.
    let past = after.messages(&owner("local"), id, None, 100).await;
    let past = past.expect("messages").0;
    let results: Vec<_> = past
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error: true,
            } => Some((*tool_use_id, content.clone())),
            _ => None,
        })
        .collect();
    let late = serde_json::json!("not executed: the person went on with something else.");
    let told = serde_json::json!("not executed: no one allowed it.");
    assert_eq!(
        results,
        [(asked[0].tool_use_id, late), (asked[1].tool_use_id, told)]
    );
    let ended = [ToolState::Cancelled, ToolState::Cancelled];
    assert_eq!(tools(&after, id).await, ended);
    assert_eq!(past.last().map(|message| message.turn_id), Some(next));
    // And so is that of the one after, from memory.
    let third = submit(&after, &owner("local"), id, say("go on")).await;
    third.expect("accepted");
    stage::ended(&after, id, 3).await;
}

#[tokio::test]
async fn a_turn_in_line_takes_the_questions_back_when_it_starts() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, act) = asking();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let slow: Act = Arc::new(move |turn| {
        let (gate, act) = (held.clone(), act.clone());
        Box::pin(async move {
            let _pass = gate.acquire().await;
            act(turn).await
        })
    });
    let sessions = sessions(dir.path(), Options::default(), slow).await;
    let id = new_session(&sessions).await;
    let first = enqueue(&sessions, id, "1").await.turn_id;
    enqueue(&sessions, id, "then this").await;
    gate.add_permits(10);
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let asked = questions(&sessions, first).await;
    assert_eq!(
        resolved(&events),
        [(asked[0].id, Decision::Reject, "system".to_owned())]
    );
    assert_eq!(book.done.lock().len(), 0);
}

#[tokio::test]
async fn a_leg_that_is_cancelled_ends_the_tools_it_never_called() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = service(dir.path()).await;
    let metadata = serde_json::json!({"hang": true});
    let (id, turn) = paused(&sessions, with("1", &metadata)).await;
    let asked = questions(&sessions, turn).await;
    let done = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    let leg = done.expect("taken").next.expect("a leg");
    let cancelled = sessions.cancel(&owner("local"), leg, None).await;
    cancelled.expect("asked to stop");
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let failed = events.iter().find_map(|event| match &event.body {
        Body::ToolFailed(failed) => Some((event.turn_id, failed)),
        _ => None,
    });
    let (of, failed) = failed.expect("the tool ends");
    assert_eq!(of, Some(leg));
    assert_eq!(
        (failed.error_class, failed.called, failed.tool_type),
        (ToolErrorClass::Cancelled, false, ToolType::Http)
    );
    assert_eq!(*book.done.lock(), []);
    assert_eq!(tools(&sessions, id).await, [ToolState::Cancelled]);
    let again = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again.map(|done| done.next), Ok(Some(leg)));
}

#[tokio::test]
async fn a_leg_that_a_crash_ended_is_swept_and_does_not_run_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, first) = service(dir.path()).await;
    let metadata = serde_json::json!({"hang": true});
    let (id, turn) = paused(&first, with("1", &metadata)).await;
    let asked = questions(&first, turn).await;
    let done = answer(&first, turn, vec![yes(&asked[0])]).await;
    let leg = done.expect("taken").next.expect("a leg");
    let image = crashed(dir.path());
    let (book, after) = service(image.path()).await;
    let events = ended(&after, id, 2).await;
    assert_each_ends_once(&events);
    let Body::TurnCompleted(end) = terminal(&events, leg) else {
        panic!("a failure")
    };
    assert_eq!(end.reason.as_deref(), Some("server_restart"));
    assert_eq!(tools(&after, id).await, [ToolState::Failed]);
    let again = answer(&after, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again.map(|done| done.next), Ok(Some(leg)));
    assert_eq!(book.inputs.lock().len(), 0);
}

#[tokio::test]
async fn a_leg_may_ask_again_and_the_next_is_shown_all_of_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = service(dir.path()).await;
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

#[tokio::test]
async fn a_turn_that_asked_and_did_not_pause_takes_its_questions_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        ask(&turn, 1);
        if turn.input.content == [ContentBlock::text("hang")] {
            std::future::pending::<()>().await;
        }
        OK
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let first = submit(&sessions, &owner("local"), id, say("end")).await;
    let first = first.expect("accepted").turn_id;
    let events = ended(&sessions, id, 1).await;
    let Body::TurnCompleted(end) = terminal(&events, first) else {
        panic!("a failure")
    };
    assert_eq!(end.status, TurnStatus::Failed);
    let second = submit(&sessions, &owner("local"), id, say("hang")).await;
    let second = second.expect("accepted").turn_id;
    let asked = loop {
        let asked = questions(&sessions, second).await;
        if !asked.is_empty() {
            break asked;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let early = answer(&sessions, second, vec![yes(&asked[0])]).await;
    assert_eq!(early, Err(Error::TurnNotPaused), "it is still at work");
    let image = crashed(dir.path());
    sessions
        .cancel(&owner("local"), second, None)
        .await
        .expect("asked to stop");
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(resolved(&events).len(), 2);
    assert_eq!(
        events.last().map(|event| event.body.kind()),
        Some(EventType::TurnCancelled)
    );
    let late = answer(&sessions, second, vec![no(&asked[0])]).await;
    assert_eq!(late, Err(Error::ApprovalResolved(asked[0].id)));
    // The same after a crash in that moment.
    let (_, after) = service(image.path()).await;
    let events = ended(&after, id, 2).await;
    assert_eq!(resolved(&events).len(), 2);
    let late = answer(&after, second, vec![yes(&asked[0])]).await;
    assert_eq!(late, Err(Error::ApprovalResolved(asked[0].id)));
}

#[tokio::test]
async fn a_server_that_goes_away_takes_no_answers_and_a_deleted_session_has_no_questions() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, sessions) = service(dir.path()).await;
    let (id, turn) = paused(&sessions, say("1")).await;
    let asked = questions(&sessions, turn).await;
    sessions.refuse_turns();
    let refused = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(refused, Err(Error::Draining));
    sessions.delete(&owner("local"), id).await.expect("gone");
    let gone = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(gone, Err(Error::TurnNotFound));
}
