//! Stop campaign: turns with models, programs, HTTP tools, MCP servers and workers are stopped at
//! random times under load, by every method; nothing of them may be left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use turnwire_event::{EventType, SessionId};
use turnwire_testkit::provider::{ModelMessage, ProviderAnswer};
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::stubborn::StubbornPrograms;

use super::{FanOut, StopFixture, StopMethod, ToolKind, stopped, watch};
use crate::load;

const SESSIONS: usize = 50;
/// The latest stop after the response to the submit.
const LATEST_MS: u64 = 300;

/// The counts of a stop campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct StopReport {
    pub stops: usize,
    /// Stops after the end of their turn.
    pub late: usize,
}

/// Makes `stops` stops on one server, and checks the history.
pub async fn run(stops: usize, mut rng: SeededRng) -> StopReport {
    let programs = StubbornPrograms::new();
    let fixture = Arc::new(StopFixture::open(Duration::from_millis(200)).await);
    let needles = Arc::new(add_tools(&fixture, &programs));
    let sessions = load::sessions(&fixture.api, SESSIONS).await;
    let remaining = Arc::new(AtomicUsize::new(stops));
    let tasks = sessions.iter().map(|&session| {
        let (fixture, needles) = (fixture.clone(), needles.clone());
        tokio::spawn(stop(
            fixture,
            session,
            needles,
            rng.fork(),
            remaining.clone(),
        ))
    });
    let tasks: Vec<_> = tasks.collect();
    let mut late = 0;
    for task in tasks {
        late += task.await.expect("a stopper");
    }
    // Every turn has ended: no process or connection of them may be left.
    assert_eq!(programs.processes(), [0; 0]);
    fixture.sockets_closed().await;
    load::check_history(&fixture.api, &sessions).await;
    assert!(
        late * 2 < stops,
        "most stops must find a turn that runs: {late} of {stops} were late"
    );
    StopReport { stops, late }
}

fn add_tools(fixture: &StopFixture, programs: &StubbornPrograms) -> Vec<String> {
    let words = ProviderAnswer::text(["One ", "two ", "three ", "four ", "five ", "six."]);
    let words = words.frames_every(Duration::from_millis(25));
    fixture.fake.always("load-words-", words);
    let mut needles = vec!["load-words-".to_owned()];
    for kind in ToolKind::ALL {
        for fan in [FanOut::One, FanOut::Agents] {
            let needle = format!("load-{kind:?}-{fan:?}-");
            fixture
                .fake
                .always(&needle, ModelMessage::new(kind.parts(fan, programs)));
            needles.push(needle);
        }
    }
    needles
}

/// Stops turns in one session until enough have been stopped in all.
async fn stop(
    fixture: Arc<StopFixture>,
    session: SessionId,
    needles: Arc<Vec<String>>,
    mut rng: SeededRng,
    left: Arc<AtomicUsize>,
) -> usize {
    let api = fixture.api.clone();
    let mut client = watch(&api, "stopper", session).await;
    let mut late = 0;
    while left
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
        .is_ok()
    {
        let needle = &needles[rng.index(needles.len())];
        let turn = api.submit(session, needle).await.expect("taken").turn_id;
        tokio::time::sleep(rng.millis(0, LATEST_MS)).await;
        let way = StopMethod::ALL[rng.index(StopMethod::ALL.len())];
        way.stop(&api, &mut client, (session, turn)).await;
        if rng.chance(30) {
            api.cancel(turn).await.expect("an answer");
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
