//! Law 4: a snapshot at any moment and what follows it are the state in the end, also while a
//! thousand deltas a second stream and commits are forced in between.

use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::scene::Scene;
use turnwire_event::{EventType, SessionId, TurnId};
use turnwire_testkit::dice::Dice;
use turnwire_testkit::history::{History, Line};
use turnwire_testkit::rest::Rest;
use turnwire_testkit::script::{Script, Step};
use turnwire_testkit::server::Options;
use turnwire_testkit::watch::{Ask, Client, End};

const SNAPSHOTS: usize = 60;
const DELTAS: u64 = 5_000;

/// Takes a snapshot and stays: a few for long, the others for a little while.
async fn look(client: Client, stay: usize) -> Result<(), End> {
    let mut client = client;
    client.subscribed(&Ask::snapshot()).await?;
    for _ in 0..stay {
        if client.event().await?.body.kind().is_terminal() {
            break;
        }
    }
    Ok(())
}

/// Posts feedback for four seconds: each is a commit in the middle of the stream.
async fn post(rest: Rest, session: SessionId, turn: TurnId, begun: Instant) -> usize {
    let path = format!("/sessions/{session}/feedback");
    let mut posted = 0usize;
    while begun.elapsed() < Duration::from_secs(4) {
        let answer = rest
            .post(&path, json!({"turn_id": turn, "rating": posted}))
            .await;
        posted += usize::from(answer.is_ok_and(|answer| answer.status == 202));
        tokio::time::sleep(Duration::from_millis(8)).await;
    }
    posted
}

/// How many snapshots caught a message in flight.
fn inside(history: &History) -> usize {
    let lines = history
        .connections
        .iter()
        .flat_map(|connection| &connection.lines);
    let open = lines.filter(|line| match line {
        Line::Received(frame) => {
            frame.text.starts_with("{\"type\":\"snapshot\"")
                && frame.text.contains("\"status\":\"in_progress\"")
        }
        Line::Subscribed(_) => false,
    });
    open.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_4_a_snapshot_and_what_follows_it_are_the_final_state() {
    let mut dice = Dice::from_env();
    let words = "eight ch";
    let script = Script::new()
        .on("^fast", [Step::slow(words, 8, 1).repeat(DELTAS)])
        .on("", [Step::text("hello")]);
    let scene = Scene::new(Options::script(script)).await;
    let before = scene.turn("hi").await[0].turn_id.expect("a turn");
    let mut live = scene.watch("live", Ask::live()).await;
    let turn = scene.submit("fast").await;
    live.until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    let begun = Instant::now();
    let watching = tokio::spawn(async move {
        live.turn(turn)
            .await
            .map(|events| (events, begun.elapsed()))
    });

    let posting = tokio::spawn(post(scene.rest.clone(), scene.session, before, begun));
    let mut looking = Vec::new();
    for number in 0..SNAPSHOTS {
        tokio::time::sleep(dice.millis(20, 80)).await;
        let client = scene.connect(&format!("snapshot {number}")).await;
        let stay = if number % 15 == 0 {
            usize::MAX
        } else {
            dice.between(5, 60) as usize
        };
        looking.push(tokio::spawn(look(client, stay)));
    }
    for task in looking {
        task.await
            .expect("a task")
            .expect("events after the snapshot");
    }
    let (events, took) = watching.await.expect("a task").expect("the whole turn");
    let posted = posting.await.expect("a task");
    let deltas = events
        .iter()
        .filter(|e| e.body.kind() == EventType::TextDelta)
        .count();
    let rate = deltas as f64 / took.as_secs_f64();
    println!("{deltas} deltas in {took:?}, {rate:.0} a second; {posted} commits forced");
    assert!(rate > 600.0, "{rate:.0} deltas a second");
    assert!(posted > 50, "{posted} commits");
    let history = scene.judge().await;
    assert!(
        inside(&history) >= 50,
        "{} snapshots in a message",
        inside(&history)
    );
}
