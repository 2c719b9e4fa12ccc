//! `turnwire doctor`: checks what a server needs, one line each, and says what to do. Changes nothing and
//! prints no secret.

mod check;
mod environment;
mod outside;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::command::settings;
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use check::{CheckLevel, CheckResult};

/// Runs every check; the exit code is 1 if one found a problem.
pub(crate) async fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let mut checks = Vec::new();
    match settings::load(&args.settings) {
        // Nothing else is known without them.
        Err(error) => checks.push(CheckResult::problem(
            "settings",
            format!("cannot be read: {error:#}"),
            "correct them; `turnwire config show` prints what is in force",
        )),
        Ok(config) => {
            checks.extend(environment::settings(&config));
            checks.extend(environment::folder(&config));
            checks.push(environment::disk(&config));
            checks.extend(environment::database(&config));
            checks.extend(environment::clock(&config));
            checks.extend(outside::port(&config).await);
            let (pack_checks, pack) = outside::pack(&config);
            checks.extend(pack_checks);
            if let Some(pack) = pack {
                checks.extend(outside::providers(&config, &pack, args.offline).await);
            }
        }
    }
    let is_bad = checks
        .iter()
        .any(|check| check.level == CheckLevel::Problem);
    print(&match args.json {
        true => format!("{:#}\n", json!({"ok": !is_bad, "checks": checks})),
        false => as_text(&checks, ColorMode::of_stdout()),
    });
    Ok(ExitCode::from(u8::from(is_bad)))
}

fn as_text(checks: &[CheckResult], color: ColorMode) -> String {
    let line = |check: &CheckResult| {
        let (tone, level) = match check.level {
            CheckLevel::Ok => (TextTone::Good, "ok     "),
            CheckLevel::Warning => (TextTone::Quiet, "warning"),
            CheckLevel::Problem => (TextTone::Bad, "problem"),
        };
        let action = check.action.as_ref();
        let action = action.map_or(String::new(), |action| format!("; {action}"));
        let level = color.tint(tone, level);
        format!("{level}  {}: {}{action}\n", check.name, check.finding)
    };
    checks.iter().map(line).collect()
}
