//! `cargo xtask campaign KIND N [--binary FILE]`: long runs of the fault campaigns that the tests run
//! briefly, and the fairness campaign. Built for release, so that as many trials as possible fit in
//! an hour.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::step::{call, cargo};

/// The names of all campaigns; the command of `e2e` has the same.
const KINDS: [&str; 6] = ["kills", "cuts", "stops", "workers", "api", "fairness"];

/// Rounds of the fairness campaign if no number is given: about five minutes.
const FAIRNESS_ROUNDS: usize = 3;

/// The arguments of a campaign, checked before anything is built.
#[derive(Debug, PartialEq, Eq)]
struct CampaignArgs<'a> {
    kind: &'a str,
    trials: usize,
    /// The server to test instead of the one that is built.
    binary: Option<&'a str>,
}

impl<'a> CampaignArgs<'a> {
    fn read(arguments: &'a [String]) -> Result<Self> {
        let (arguments, binary) = match arguments {
            [rest @ .., flag, file] if flag == "--binary" => (rest, Some(file.as_str())),
            all => (all, None),
        };
        let (kind, trials) = match arguments {
            [kind] if kind == "fairness" => (kind, None),
            [kind, trials] => (kind, Some(trials)),
            _ => bail!(
                "usage: cargo xtask campaign {} N [--binary FILE]",
                KINDS.join("|")
            ),
        };
        if !KINDS.contains(&kind.as_str()) {
            bail!("no such campaign: {kind}; there are {}", KINDS.join(", "));
        }
        let trials = match trials {
            None => FAIRNESS_ROUNDS,
            Some(text) => match text.parse() {
                Ok(number @ 1..) => number,
                _ => bail!("{text:?} is not a number of trials: write a whole number from 1"),
            },
        };
        Ok(Self {
            kind,
            trials,
            binary,
        })
    }
}

/// Runs a campaign; the command of `e2e` prints trials, violations and the bound.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let args = CampaignArgs::read(arguments)?;
    let cargo = cargo();
    let mut build = vec!["build", "--release", "-p", "turnwire-e2e"];
    if args.binary.is_none() {
        build.extend(["-p", "turnwire"]);
    }
    call(root, &cargo, &build)?;
    let trials = args.trials.to_string();
    let mut command = Command::new(&cargo);
    command
        .args(["run", "-q", "--release", "-p", "turnwire-e2e", "--"])
        .args([args.kind, &trials])
        .current_dir(root);
    if let Some(binary) = args.binary {
        let file = std::fs::canonicalize(binary).with_context(|| format!("--binary {binary}"))?;
        command.env("TURNWIRE_BIN", file);
    }
    let status = command.status().context("starting the campaign")?;
    if !status.success() {
        bail!("the campaign {} failed ({status})", args.kind);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn unknown_campaign_is_refused() {
        let refused = |text: &str| {
            let words = words(text);
            let error = CampaignArgs::read(&words).expect_err("refused");
            error.to_string()
        };
        let usage =
            "usage: cargo xtask campaign kills|cuts|stops|workers|api|fairness N [--binary FILE]";
        assert_eq!(refused(""), usage);
        assert_eq!(refused("kills"), usage);
        assert_eq!(refused("kills 1 2"), usage);
        assert_eq!(
            refused("fires 1"),
            "no such campaign: fires; there are kills, cuts, stops, workers, api, fairness"
        );
        for count in ["0", "many", "-1"] {
            let error = refused(&format!("cuts {count}"));
            assert!(error.contains("write a whole number from 1"), "{error}");
        }
    }

    #[test]
    fn fairness_has_default_rounds_and_any_campaign_a_binary() {
        let read = |kind, trials, binary| CampaignArgs {
            kind,
            trials,
            binary,
        };
        let cases = [
            ("fairness", read("fairness", FAIRNESS_ROUNDS, None)),
            ("fairness 2", read("fairness", 2, None)),
            ("cuts 7 --binary x", read("cuts", 7, Some("x"))),
        ];
        for (text, wanted) in cases {
            let words = words(text);
            assert_eq!(CampaignArgs::read(&words).expect("read"), wanted);
        }
    }
}
