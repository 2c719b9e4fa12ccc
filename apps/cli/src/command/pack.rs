//! `turnwire check` and `turnwire init`: the two ends of writing a pack.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use turnwire_pack::{FindingLevel, PackFiles, PackFinding};
use turnwire_serve::host::{self, ServerVariables};

use crate::args::{CheckArgs, InitArgs};
use crate::terminal::color::{ColorMode, TextTone};

/// Checks a pack as a server would before it starts; the exit code says whether it would start.
pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode> {
    let files = PackFiles::read(&args.pack)?;
    // The address of the demo data service is known only when a server starts it.
    let variables = ServerVariables::from_env().or(turnwire_demo::VARIABLE, "http://127.0.0.1:9");
    let report = host::judge(&files, &variables);
    let errors = report
        .findings
        .iter()
        .filter(|f| f.level == FindingLevel::Error);
    let errors = errors.count();
    let text = if args.json {
        let findings: Vec<_> = report.findings.iter().map(as_json).collect();
        format!("{:#}\n", json!({"ok": errors == 0, "findings": findings}))
    } else {
        as_text(&args.pack, &report.findings, ColorMode::of_stdout())
    };
    // Whoever reads may have seen enough; the exit code still tells.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::from(u8::from(errors > 0)))
}

/// Writes a pack into a folder that holds nothing yet.
pub(crate) fn init(args: &InitArgs) -> Result<()> {
    let dir = &args.dir;
    if dir.exists() && std::fs::read_dir(dir)?.next().is_some() {
        bail!(
            "{} already holds something; name a new folder",
            dir.display()
        );
    }
    let files = if args.demo {
        PackFiles::market()
    } else {
        PackFiles::skeleton(&name(dir))
    };
    for (path, text) in files.iter() {
        let path = dir.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        std::fs::write(&path, text)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let path = dir.display();
    let count = files.iter().count();
    println!("wrote {count} files into {path}; run: turnwire serve --pack {path}");
    Ok(())
}

/// The folder's name as a pack may be named.
fn name(dir: &Path) -> String {
    let last = dir.file_name().map(|name| name.to_string_lossy());
    let clean: String = last
        .unwrap_or_default()
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let clean = clean.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    match clean {
        "" => "assistant".to_owned(),
        clean => clean.chars().take(48).collect(),
    }
}

fn as_text(pack: &Path, findings: &[PackFinding], paint: ColorMode) -> String {
    let mut text = String::new();
    for finding in findings {
        let (tone, word) = match finding.level {
            FindingLevel::Error => (TextTone::Bad, "error"),
            FindingLevel::Warning => (TextTone::Quiet, "warning"),
        };
        let PackFinding {
            file,
            line,
            column,
            message,
            instead,
            ..
        } = finding;
        let place = pack.join(file);
        let place = place.display();
        text += &format!(
            "{place}:{line}:{column}: {}: {message}\n",
            paint.tint(tone, word)
        );
        if let Some(instead) = instead {
            text += &format!("    write: {instead}\n");
        }
    }
    let count = |level| findings.iter().filter(|f| f.level == level).count();
    let counted = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    let (errors, warnings) = (count(FindingLevel::Error), count(FindingLevel::Warning));
    let (tone, mark) = if errors > 0 {
        (TextTone::Bad, "✗")
    } else {
        (TextTone::Good, "✓")
    };
    text += &format!(
        "{} {}, {}\n",
        paint.tint(tone, mark),
        counted(errors, "error"),
        counted(warnings, "warning")
    );
    text
}

fn as_json(finding: &PackFinding) -> serde_json::Value {
    json!({
        "level": match finding.level {
            FindingLevel::Error => "error",
            FindingLevel::Warning => "warning",
        },
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
    fn a_folder_s_name_becomes_one_that_a_pack_may_have() {
        for (dir, wanted) in [
            ("packs/My Shop-2", "my_shop_2"),
            ("./9lives", "lives"),
            ("..", "assistant"),
            ("日本", "assistant"),
        ] {
            assert_eq!(name(Path::new(dir)), wanted, "{dir}");
        }
    }

    #[test]
    fn a_finding_is_told_with_its_place_and_what_to_write() {
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
