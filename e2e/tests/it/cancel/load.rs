//! F14: cancels at random times under load, after which nothing is left; and a server that is
//! killed while tools run. `cargo xtask campaign stops N` runs more of them.

use std::time::Duration;

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::stops::{FanOut, StopFixture, ToolKind, campaign};
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
        ToolKind::Ignores,
        ToolKind::Grandchild,
        ToolKind::Escapee,
        ToolKind::Endless,
        ToolKind::Stopper,
        ToolKind::Delegate,
    ];
    let programs = StubbornPrograms::new();
    let mut fixture = StopFixture::open(Duration::from_secs(5)).await;
    let (mut sessions, mut turns, mut processes) = (Vec::new(), Vec::new(), 0);
    for n in 0..20 {
        let kind = kinds[n % kinds.len()];
        let needle = format!("killed-{n}-");
        fixture.fake.always(
            &needle,
            ModelMessage::new(kind.parts(FanOut::One, &programs)),
        );
        let session = fixture.api.create().await.expect("a session");
        let turn = fixture.api.submit(session, &needle).await.expect("taken");
        sessions.push(session);
        turns.push(turn.turn_id);
        processes += kind.processes();
    }
    programs.until_ready(processes).await;
    fixture.server.kill().await;
    let took = programs.until_gone(Duration::from_secs(30)).await;
    println!("nothing is left {took:?} after the server was killed");
    // Five of grace; a machine that is busy may take longer, but not twice as long.
    assert!(took < Duration::from_secs(10), "{took:?}");
    fixture.server.run().await.expect("it starts again");
    for turn in turns {
        let row = fixture.api.turn(turn).await.expect("a turn");
        assert_eq!(row["state"], "completed", "{row}");
        let end = &row["terminal"]["payload"];
        assert_eq!(
            (&end["status"], &end["reason"]),
            (&json!("failed"), &json!("server_restart"))
        );
    }
    assert_eq!(programs.processes(), [0; 0]);
    load::check_history(&fixture.api, &sessions).await;
}
