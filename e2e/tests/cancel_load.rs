//! F14: 500 stops at random moments under load, in every way, of turns with models, programs, pages,
//! tool servers and workers; then nothing is left. And a server that is killed with tools running.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::stops::{Fan, House, Kind, Way, stopped, watch};
use turnwire_event::{EventType, SessionId};
use turnwire_testkit::dice::Dice;
use turnwire_testkit::nasty::Nasty;
use turnwire_testkit::provider::{Answer, Message};

const SESSIONS: usize = 50;
/// How late a stop may come after its submit was answered.
const LATEST_MS: u64 = 300;

fn furnish(house: &House, nasty: &Nasty) -> Vec<String> {
    let words = Answer::text(["One ", "two ", "three ", "four ", "five ", "six."]);
    let words = words.frames_every(Duration::from_millis(25));
    house.fake.always("load-words-", words);
    let mut needles = vec!["load-words-".to_owned()];
    for kind in Kind::ALL {
        for fan in [Fan::One, Fan::Agents] {
            let needle = format!("load-{kind:?}-{fan:?}-");
            house
                .fake
                .always(&needle, Message::new(kind.parts(fan, nasty)));
            needles.push(needle);
        }
    }
    needles
}

/// Stops turns in one session until enough have been stopped in all.
async fn stop(
    house: Arc<House>,
    session: SessionId,
    needles: Arc<Vec<String>>,
    mut dice: Dice,
    left: Arc<AtomicUsize>,
) -> usize {
    let rest = house.rest.clone();
    let mut client = watch(&rest, "stopper", session).await;
    let mut late = 0;
    while left
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
        .is_ok()
    {
        let needle = &needles[dice.index(needles.len())];
        let turn = rest.submit(session, needle).await.expect("taken").turn_id;
        tokio::time::sleep(dice.millis(0, LATEST_MS)).await;
        let way = Way::ALL[dice.index(Way::ALL.len())];
        way.stop(&rest, &mut client, (session, turn)).await;
        if dice.chance(30) {
            rest.cancel(turn).await.expect("an answer");
        }
        let mut seen = client.turn(turn).await.expect("the end");
        seen.retain(|event| event.turn_id == Some(turn));
        let last = seen.last().map(|event| event.body.kind());
        if last == Some(EventType::TurnCompleted) {
            late += 1;
            continue;
        }
        stopped(&format!("{needle} {way:?}"), &seen);
    }
    late
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_077_r_17_stops_at_random_moments_under_load_leave_nothing() {
    let stops = std::env::var("TURNWIRE_STOPS");
    let stops = stops.ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let nasty = Nasty::new();
    let house = Arc::new(House::open(Duration::from_millis(200)).await);
    let needles = Arc::new(furnish(&house, &nasty));
    let sessions = load::sessions(&house.rest, SESSIONS).await;
    let (left, mut dice) = (Arc::new(AtomicUsize::new(stops)), Dice::from_env());
    let begun = std::time::Instant::now();
    let tasks = sessions.iter().map(|&session| {
        let (house, needles) = (house.clone(), needles.clone());
        tokio::spawn(stop(house, session, needles, dice.fork(), left.clone()))
    });
    let tasks: Vec<_> = tasks.collect();
    let mut late = 0;
    for task in tasks {
        late += task.await.expect("a stopper");
    }
    println!(
        "{stops} stops in {:?}, {late} of them too late",
        begun.elapsed()
    );
    assert!(late * 2 < stops, "most stops must find a turn that runs");
    // Every turn has its end: nothing of any of them may be there now.
    assert_eq!(nasty.processes(), [0; 0]);
    house.sockets_closed().await;
    load::judge(&house.rest, &sessions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_17_a_server_that_is_killed_leaves_no_program_and_no_turn_without_its_end() {
    let kinds = [
        Kind::Ignores,
        Kind::Grandchild,
        Kind::Escapee,
        Kind::Endless,
        Kind::Stopper,
        Kind::Delegate,
    ];
    let nasty = Nasty::new();
    let mut house = House::open(Duration::from_secs(5)).await;
    let (mut sessions, mut turns, mut processes) = (Vec::new(), Vec::new(), 0);
    for n in 0..20 {
        let kind = kinds[n % kinds.len()];
        let needle = format!("killed-{n}-");
        house
            .fake
            .always(&needle, Message::new(kind.parts(Fan::One, &nasty)));
        let session = house.rest.create().await.expect("a session");
        let turn = house.rest.submit(session, &needle).await.expect("taken");
        sessions.push(session);
        turns.push(turn.turn_id);
        processes += kind.processes();
    }
    nasty.until_ready(processes).await;
    house.server.kill9().await;
    let took = nasty.until_gone(Duration::from_secs(30)).await;
    println!("nothing is left {took:?} after the server was killed");
    // Five of grace; a machine that is busy may take longer, but not twice as long.
    assert!(took < Duration::from_secs(10), "{took:?}");
    house.server.run().await.expect("it starts again");
    for turn in turns {
        let row = house.rest.turn(turn).await.expect("a turn");
        assert_eq!(row["state"], "completed", "{row}");
        let end = &row["terminal"]["payload"];
        assert_eq!(
            (&end["status"], &end["reason"]),
            (&json!("failed"), &json!("server_restart"))
        );
    }
    assert_eq!(nasty.processes(), [0; 0]);
    load::judge(&house.rest, &sessions).await;
}
