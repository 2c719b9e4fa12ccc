//! Steps of a long command: each prints its name at the start and its time at the end, so that the
//! output shows where the command is.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Runs one step and prints its name before and its time after.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("xtask: {name} …");
    let started = Instant::now();
    let done = work();
    let verdict = if done.is_ok() { "done" } else { "FAILED" };
    eprintln!("xtask: {name}: {verdict} in {}", clock(started.elapsed()));
    done
}

/// Runs a program to its end; a failure names the whole command line.
pub fn call(dir: &Path, program: &str, args: &[&str]) -> Result<()> {
    let line = format!("{program} {}", args.join(" "));
    let status = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .with_context(|| format!("starting {program}"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// The cargo that runs this command.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// A duration for people: `0.4 s`, `12.3 s`, `4 min 05 s`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let seconds = time.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_for_people() {
        let texts = [350, 12_340, 61_000, 245_900].map(Duration::from_millis);
        let texts = texts.map(clock);
        assert_eq!(texts, ["0.3 s", "12.3 s", "1 min 01 s", "4 min 05 s"]);
    }
}
