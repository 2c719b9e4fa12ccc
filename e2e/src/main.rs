//! Campaigns of any length: `kills N`, `cuts N`, `cancels N`, `chat-cuts N`, `both N`. They run
//! in rounds, each on a fresh server and judged by itself, so that memory stays bounded; the seed of each round is
//! printed before it begins, and `TURNWIRE_SEED` plays a campaign again.

use std::process::ExitCode;
use std::time::Instant;

use turnwire_e2e::{both, cancels, chat_cuts, cuts, kills};
use turnwire_testkit::dice::Dice;

const USAGE: &str = "usage: turnwire-e2e kills|cuts|cancels|chat-cuts|both COUNT";

/// How much of each kind one server is put through.
const ROUND: [(&str, usize); 5] = [
    ("kills", 50),
    ("cuts", 5_000),
    ("cancels", 500),
    ("chat-cuts", 5_000),
    ("both", 50),
];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count] = &arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let round = ROUND.iter().find(|(name, _)| name == kind);
    let (Some((_, round)), Ok(count)) = (round, count.parse::<usize>()) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let mut dice = Dice::from_env();
    let begun = Instant::now();
    let mut done = 0;
    while done < count {
        let part = (*round).min(count - done);
        let seeded = dice.fork();
        println!(
            "{done} of {count} {kind}, next round has seed {}",
            seeded.seed()
        );
        match kind.as_str() {
            "kills" => println!("{:?}", kills::run(part, seeded).await),
            "cuts" => println!("{:?}", cuts::run(part, seeded).await),
            "chat-cuts" => println!("{:?}", chat_cuts::run(part, seeded).await),
            "both" => println!("{:?}", both::run(part, seeded).await),
            _ => println!("{:?}", cancels::run(part, seeded).await),
        }
        done += part;
    }
    println!(
        "{count} {kind} without a broken promise in {:?}",
        begun.elapsed()
    );
    ExitCode::SUCCESS
}
