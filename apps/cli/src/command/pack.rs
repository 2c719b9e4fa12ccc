//! `turnwire check` and `turnwire init`: checking and creating a pack.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use turnwire_pack::{FindingLevel, PackFiles, PackFinding};
use turnwire_serve::host::{self, ModelTrial, ServerVariables};

use crate::args::{CheckArgs, InitArgs};
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use crate::terminal::wording::counted;

/// Checks a pack as a server does before it starts; the exit code is 1 if there is an error.
pub(crate) async fn check(args: &CheckArgs) -> Result<ExitCode> {
    let files = PackFiles::read(&args.pack)?;
    // The address of the demo data service is known only when a server starts it.
    let variables = ServerVariables::from_env().or(turnwire_demo::VARIABLE, "http://127.0.0.1:9");
    let report = host::judge(&files, &variables);
    let mut findings = report.findings;
    if let Some(old_pack) = &args.against {
        let earlier = PackFiles::read(old_pack)?;
        let name = old_pack.display().to_string();
        findings.extend(turnwire_pack::check_against(&files, &earlier, &name));
    }
    let is_good = count(&findings, FindingLevel::Error) == 0;
    let trials = match report.pack.filter(|_| args.online && is_good) {
        Some(pack) => Some(host::try_models(&pack, &variables).await?),
        None => None,
    };
    let failures = trials.iter().flatten();
    findings.extend(failures.filter_map(|trial| trial.finding.clone()));
    let ok = count(&findings, FindingLevel::Error) == 0;
    print(&if args.json {
        let findings: Vec<_> = findings.iter().map(as_json).collect();
        let mut report = json!({"ok": ok, "findings": findings});
        if let Some(trials) = &trials {
            let trials = trials.iter();
            let trials = trials.map(|it| json!({"model": it.model, "ok": it.finding.is_none()}));
            report["online"] = trials.collect();
        }
        format!("{report:#}\n")
    } else {
        let color = ColorMode::of_stdout();
        let online = match &trials {
            Some(trials) => trials_as_text(trials, color),
            None if args.online => "not tried online: the pack has errors\n".to_owned(),
            None => String::new(),
        };
        online + &as_text(&args.pack, &findings, color)
    });
    Ok(ExitCode::from(u8::from(!ok)))
}

/// The models that answered, a line each; those that did not are findings.
fn trials_as_text(trials: &[ModelTrial], color: ColorMode) -> String {
    if trials.is_empty() {
        return "no model of the pack is called over the network\n".to_owned();
    }
    let answered = trials.iter().filter(|trial| trial.finding.is_none());
    let mark = color.tint(TextTone::Good, "✓");
    let lines = answered.map(|trial| format!("{mark} {} answered\n", trial.model));
    lines.collect()
}

/// Writes a pack into a new or empty folder.
pub(crate) fn init(args: &InitArgs) -> Result<()> {
    let dir = &args.dir;
    let path = dir.display();
    ensure!(
        !dir.exists() || std::fs::read_dir(dir)?.next().is_none(),
        "{path} is not empty; name a new folder"
    );
    let files = match args.demo {
        true => PackFiles::market(),
        false => PackFiles::skeleton(&pack_name(dir)),
    };
    for (file, text) in files.iter() {
        let file = dir.join(file);
        let folder = file.parent().unwrap_or(dir);
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating the folder {}", folder.display()))?;
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let count = files.iter().count();
    println!("wrote {count} files into {path}; run: turnwire serve --pack {path}");
    Ok(())
}

/// A valid pack name from the folder's name.
fn pack_name(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let valid = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.to_lowercase().chars().map(valid).collect();
    match name.trim_start_matches(|c: char| !c.is_ascii_lowercase()) {
        "" => "assistant".to_owned(),
        name => name.chars().take(48).collect(),
    }
}

fn count(findings: &[PackFinding], level: FindingLevel) -> u64 {
    let of_level = findings.iter().filter(|finding| finding.level == level);
    of_level.count() as u64
}

fn level_name(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Error => "error",
        FindingLevel::Warning => "warning",
    }
}

fn as_text(pack: &Path, findings: &[PackFinding], color: ColorMode) -> String {
    let mut text = String::new();
    for finding in findings {
        let tone = match finding.level {
            FindingLevel::Error => TextTone::Bad,
            FindingLevel::Warning => TextTone::Quiet,
        };
        let (file, line, column) = (pack.join(&finding.file), finding.line, finding.column);
        let (file, message) = (file.display(), &finding.message);
        let level = color.tint(tone, level_name(finding.level));
        text += &format!("{file}:{line}:{column}: {level}: {message}\n");
        if let Some(instead) = &finding.instead {
            text += &format!("    write: {instead}\n");
        }
    }
    let errors = count(findings, FindingLevel::Error);
    let mark = match errors {
        0 => color.tint(TextTone::Good, "✓"),
        _ => color.tint(TextTone::Bad, "✗"),
    };
    let warnings = counted(count(findings, FindingLevel::Warning), "warning");
    text + &format!("{mark} {}, {warnings}\n", counted(errors, "error"))
}

fn as_json(finding: &PackFinding) -> serde_json::Value {
    json!({
        "level": level_name(finding.level),
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "what": finding.message,
        "instead": finding.instead,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_name_becomes_a_valid_pack_name() {
        for (dir, wanted) in [
            ("packs/My Shop-2", "my_shop_2"),
            ("./9lives", "lives"),
            ("..", "assistant"),
            ("日本", "assistant"),
        ] {
            assert_eq!(pack_name(Path::new(dir)), wanted, "{dir}");
        }
    }

    #[test]
    fn finding_has_its_position_and_correction() {
        let finding = PackFinding {
            level: FindingLevel::Error,
            file: "verticals/shop/agent.yaml".into(),
            line: 3,
            column: 9,
            message: "`emits` names `teleporting_offers`, which is not registered".into(),
            instead: Some("one of: searching_offers".into()),
            unregistered: false,
        };
        assert_eq!(
            as_text(Path::new("packs/market"), &[finding], ColorMode::Plain),
            "packs/market/verticals/shop/agent.yaml:3:9: error: `emits` names \
             `teleporting_offers`, which is not registered\n    write: one of: searching_offers\n\
             ✗ 1 error, 0 warnings\n"
        );
    }
}
