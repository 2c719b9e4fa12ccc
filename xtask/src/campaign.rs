//! `cargo xtask campaign KIND N`: long runs of the fault campaigns that the tests run briefly.
//! Built for release, so that as many trials as possible fit in an hour.

use std::path::Path;

use anyhow::{Result, bail};

use crate::step::{call, cargo};

/// The names of all campaigns.
const KINDS: [&str; 4] = ["kills", "cuts", "stops", "workers"];

/// Runs a campaign; the command of `e2e` prints trials, violations and the bound.
pub fn run(root: &Path, kind: Option<&str>, trials: Option<&str>) -> Result<()> {
    let (Some(kind), Some(trials)) = (kind, trials) else {
        bail!("usage: cargo xtask campaign {} N", KINDS.join("|"));
    };
    if !KINDS.contains(&kind) {
        bail!("no such campaign: {kind}; there are {}", KINDS.join(", "));
    }
    if trials
        .parse::<usize>()
        .ok()
        .is_none_or(|trials| trials == 0)
    {
        bail!("{trials:?} is not a number of trials: write a whole number from 1");
    }
    let cargo = cargo();
    call(
        root,
        &cargo,
        &["build", "--release", "-p", "turnwire", "-p", "turnwire-e2e"],
    )?;
    let command = [
        "run",
        "-q",
        "--release",
        "-p",
        "turnwire-e2e",
        "--",
        kind,
        trials,
    ];
    call(root, &cargo, &command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_campaign_is_refused() {
        let run = |kind, trials| run(Path::new("."), kind, trials).expect_err("refused");
        let usage = "usage: cargo xtask campaign kills|cuts|stops|workers N";
        assert_eq!(run(None, None).to_string(), usage);
        assert_eq!(run(Some("kills"), None).to_string(), usage);
        let unknown = run(Some("fires"), Some("1")).to_string();
        assert_eq!(
            unknown,
            "no such campaign: fires; there are kills, cuts, stops, workers"
        );
        for count in ["0", "many", "-1"] {
            let error = run(Some("cuts"), Some(count)).to_string();
            assert!(error.contains("write a whole number from 1"), "{error}");
        }
    }
}
