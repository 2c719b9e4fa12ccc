//! F14: stops at random moments under load, after which nothing is left; and a server that is killed
//! with tools running. `cargo xtask campaign stops N` makes more of them.

use std::time::Duration;

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::stops::{Fan, House, Kind, campaign};
use turnwire_testkit::provider::ModelMessage;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::stubborn::StubbornPrograms;

const STOPS: usize = 100;

// S3-077, R-17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_stops_under_load_leave_nothing_running() {
    let report = campaign::run(STOPS, SeededRng::from_env()).await;
    println!("{report:?}");
    assert_eq!(report.stops, STOPS);
}

//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_leaves_no_process_and_no_open_turn() {
    let kinds = [
        Kind::Ignores,
        Kind::Grandchild,
        Kind::Escapee,
        Kind::Endless,
        Kind::Stopper,
        Kind::Delegate,
    ];
    let programs = StubbornPrograms::new();
    let mut house = House::open(Duration::from_secs(5)).await;
    let (mut sessions, mut turns, mut processes) = (Vec::new(), Vec::new(), 0);
    for n in 0..20 {
        let kind = kinds[n % kinds.len()];
        let needle = format!("killed-{n}-");
        house
            .fake
            .always(&needle, ModelMessage::new(kind.parts(Fan::One, &programs)));
        let session = house.api.create().await.expect("a session");
        let turn = house.api.submit(session, &needle).await.expect("taken");
        sessions.push(session);
        turns.push(turn.turn_id);
        processes += kind.processes();
    }
    programs.until_ready(processes).await;
    house.server.kill().await;
    let took = programs.until_gone(Duration::from_secs(30)).await;
    println!("nothing is left {took:?} after the server was killed");
    // Five of grace; a machine that is busy may take longer, but not twice as long.
    assert!(took < Duration::from_secs(10), "{took:?}");
    house.server.run().await.expect("it starts again");
    for turn in turns {
        let row = house.api.turn(turn).await.expect("a turn");
        assert_eq!(row["state"], "completed", "{row}");
        let end = &row["terminal"]["payload"];
        assert_eq!(
            (&end["status"], &end["reason"]),
            (&json!("failed"), &json!("server_restart"))
        );
    }
    assert_eq!(programs.processes(), [0; 0]);
    load::judge(&house.api, &sessions).await;
}
