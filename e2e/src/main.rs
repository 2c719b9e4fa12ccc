//! Campaigns of any length: `kills N`, `cuts N`, `stops N`, `workers N`, `api N`, `fairness N`; `cargo xtask
//! campaign` runs them. They run in rounds, each on a new server and checked by itself, so that memory stays
//! bounded and the rounds after a violation still run. The seed of each round is printed before it begins,
//! and `TURNWIRE_SEED` repeats a campaign.

use std::fmt::Debug;
use std::process::ExitCode;
use std::time::Instant;

use turnwire_e2e::api_cases::{self, Access, Caller, CasePlan};
use turnwire_e2e::fairness::campaign::FairnessOptions;
use turnwire_e2e::stops::campaign;
use turnwire_e2e::{both_wires, cancels, chat_cuts, cuts, kills, worker_cuts};
use turnwire_testkit::rng::SeededRng;

const USAGE: &str = "\
usage: turnwire-e2e kills|cuts|stops|workers|api|fairness N
  kills    SIGKILL of the server under load, on the session wire and on both wires
  cuts     connections cut at random bytes and resumed, on the session and the chat wire
  stops    turns cancelled at random moments, with tools of every kind among them
  workers  connections that carry worker sessions, cut and resumed
  api      requests of schemathesis against the OpenAPI document, for strangers and for owners, with
           tokens and without
  fairness latency of ten quiet owners beside a greedy one, in N rounds per resource";

/// Requests for each operation and kind of generation in one run of a campaign of the API.
const API_EXAMPLES: u32 = 25;

/// The kind of campaign to run.
#[derive(Clone, Copy, Debug)]
enum CampaignKind {
    Kills,
    Cuts,
    Stops,
    Workers,
    Api,
}

impl CampaignKind {
    fn read(name: &str) -> Option<Self> {
        match name {
            "kills" => Some(Self::Kills),
            "cuts" => Some(Self::Cuts),
            "stops" => Some(Self::Stops),
            "workers" => Some(Self::Workers),
            "api" => Some(Self::Api),
            _ => None,
        }
    }

    /// Trials per round, on one server.
    fn round(self) -> usize {
        match self {
            Self::Kills => 50,
            Self::Cuts => 5_000,
            Self::Stops | Self::Workers => 500,
            Self::Api => 1_250,
        }
    }
}

/// Runs one round and prints what it saw; rounds of a kind with two scenarios take turns. Gives the
/// trials that counted. Panics on a violation.
async fn round(kind: CampaignKind, number: usize, trials: usize, rng: SeededRng) -> usize {
    fn show<R: Debug>(report: R) -> R {
        println!("{report:?}");
        report
    }
    match (kind, number % 2) {
        (CampaignKind::Kills, 0) => show(kills::run(trials, rng).await).kills,
        (CampaignKind::Kills, _) => show(both_wires::run(trials, rng).await).kills,
        (CampaignKind::Cuts, 0) => show(cuts::run(trials, rng).await).cuts,
        (CampaignKind::Cuts, _) => show(chat_cuts::run(trials, rng).await).cuts,
        (CampaignKind::Stops, 0) => {
            let report = show(campaign::run(trials, rng).await);
            // A stop that came too late tried nothing.
            report.stops - report.late
        }
        (CampaignKind::Stops, _) => show(cancels::run(trials, rng).await).values().sum(),
        (CampaignKind::Workers, _) => show(worker_cuts::run(trials, rng).await).0.cuts,
        (CampaignKind::Api, _) => api_round(number, trials, rng).await,
    }
}

/// Makes at least `trials` requests, with as many of each kind as that takes.
async fn api_round(number: usize, trials: usize, mut rng: SeededRng) -> usize {
    let (caller, access) = match number % 4 {
        0 => (Caller::Strangers, Access::Token),
        1 => (Caller::Owner, Access::Token),
        2 => (Caller::Strangers, Access::Believed),
        _ => (Caller::Owner, Access::Believed),
    };
    let mut made = 0;
    while made < trials {
        let plan = CasePlan {
            caller,
            access,
            examples: API_EXAMPLES,
            seed: rng.fork().seed() >> 32,
        };
        let (_server, cases) = api_cases::run(plan).await;
        println!("{plan:?}: {cases} requests");
        made += usize::try_from(cases).expect("requests are countable");
    }
    made
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, count] = &arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let count = count.parse::<usize>().ok().filter(|count| *count > 0);
    if let ("fairness", Some(rounds)) = (name.as_str(), count) {
        return fairness(rounds).await;
    }
    let (Some(kind), Some(count)) = (CampaignKind::read(name), count) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let mut rng = SeededRng::from_env();
    let started = Instant::now();
    let (mut done, mut counted, mut violations) = (0, 0, 0);
    // Two rounds where there are two trials, so that both scenarios of a kind have their turn.
    let part = kind.round().min(count.div_ceil(2));
    for number in 0.. {
        if done >= count {
            break;
        }
        let trials = part.min(count - done);
        let seeded = rng.fork();
        println!(
            "{done} of {count} {name}, next round has seed {}",
            seeded.seed()
        );
        // A violation panics in the round's task. What the round had started beside it may still run
        // on its own server, so a campaign with a violation proves nothing after it.
        match tokio::spawn(round(kind, number, trials, seeded)).await {
            Ok(trials) => counted += trials,
            Err(_) => violations += 1,
        }
        done += trials;
    }
    println!("{}", verdict(name, counted, violations));
    println!("in {:.0} s", started.elapsed().as_secs_f64());
    ExitCode::from(u8::from(violations > 0))
}

/// Runs the fairness campaign, which is judged as a whole.
async fn fairness(rounds: usize) -> ExitCode {
    let options = match FairnessOptions::from_env(rounds) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let started = Instant::now();
    let violations = turnwire_e2e::fairness::campaign::run(&options).await;
    println!(
        "fairness: {} resources, {violations} with violations",
        options.resources.len()
    );
    println!("in {:.0} s", started.elapsed().as_secs_f64());
    ExitCode::from(u8::from(violations > 0))
}

/// What a campaign shows. Without a violation in N trials the true rate is below 3/N with 95 %
/// confidence (the rule of three).
fn verdict(name: &str, trials: usize, violations: usize) -> String {
    let counts = format!("{name}: {trials} trials, {violations} rounds with violations");
    if violations > 0 {
        return counts;
    }
    let bound = 300.0 / trials as f64;
    format!("{counts}; with 95 % confidence fewer than 3/{trials} = {bound:.4} % of trials violate")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 6] = ["kills", "cuts", "stops", "workers", "api", "fairness"];

    #[test]
    fn campaigns_are_those_of_the_task() {
        let task = include_str!("../../xtask/src/campaign.rs");
        let names = KINDS.map(|name| format!("\"{name}\"")).join(", ");
        assert!(task.contains(&format!("[{names}]")), "{names}");
        assert!(USAGE.contains(&KINDS.join("|")));
    }

    #[test]
    fn bound_is_printed_only_without_violations() {
        assert_eq!(
            verdict("kills", 1_000, 0),
            "kills: 1000 trials, 0 rounds with violations; with 95 % confidence fewer than \
             3/1000 = 0.3000 % of trials violate"
        );
        assert_eq!(
            verdict("cuts", 10, 2),
            "cuts: 10 trials, 2 rounds with violations"
        );
    }
}
