//! Checks a process tool: the program, what it reads and writes, and what it may take.

use crate::check::endpoint::expansion::{self, Vars};
use crate::check::report::{FileReport, value_or, word};
use crate::finding::KnownNames;
use crate::pack::tool::{ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, ToolKind};
use crate::source::tool::{LimitsSource, ToolSource};
use crate::yaml::{Located, TextPosition};

/// Where the tool does not say.
pub(super) const TIMEOUT_MS: u64 = 30_000;
/// Bytes of output at most where the tool does not say: all of it is read by a model.
const OUTPUT_BYTES_MAX: u64 = 1 << 16;
const MEGABYTE: u64 = 1 << 20;

/// Programs that read a script from an argument.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// Checks it; `known_names` are the fields of its input.
pub(super) fn check(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    known_names: &KnownNames,
    vars: Vars<'_>,
) -> ToolKind {
    let example = "command: [wc, \"-w\"]";
    let command = match report.require(&source.command, "command", home, example) {
        Some(words) => {
            let command = expansion::command(report, words, Some(known_names), vars);
            scripted(report, &words.value);
            command
        }
        None => Vec::new(),
    };
    let env = source.env.as_ref();
    let limits = source.limits.as_ref().map(|limits| &limits.value);
    ToolKind::Process(ProcessDef {
        command,
        env: env
            .map(|pairs| expansion::environment(report, &pairs.value, vars))
            .unwrap_or_default(),
        stdin: word(&source.stdin).unwrap_or(ProcessStdin::Input),
        output: word(&source.output).unwrap_or(ProcessOutput::Text),
        output_bytes_max: value_or(&source.output_bytes_max, OUTPUT_BYTES_MAX),
        limits: bounds(limits),
    })
}

/// Says so if a field stands inside the script of a shell: what a model writes would be run.
fn scripted(report: &mut FileReport<'_>, words: &[Located<String>]) {
    let [program, flag, script, ..] = words else {
        return;
    };
    let name = program.value.rsplit('/').next().unwrap_or_default();
    let reads = flag.value.starts_with('-') && flag.value.ends_with('c');
    let without_variables = expansion::without_variables(&script.value);
    let Some(field) = expansion::fields(&without_variables).next() else {
        return;
    };
    if SHELLS.contains(&name) && reads {
        let message = format!(
            "`{{{field}}}` stands inside the script of a shell: what a model puts there is run"
        );
        report.warning(script.position, message).suggest(format!(
            "`\"$1\"` in the script, and `{name}, \"{{{field}}}\"` as the next two words"
        ));
    }
}

fn bounds(source: Option<&LimitsSource>) -> ProcessLimits {
    let number = |field: fn(&LimitsSource) -> &Option<Located<u64>>, default| {
        source.map_or(default, |source| value_or(field(source), default))
    };
    ProcessLimits {
        cpu_s: number(|limits| &limits.cpu_s, 30),
        memory_bytes: number(|limits| &limits.memory_mb, 512).saturating_mul(MEGABYTE),
        file_bytes: number(|limits| &limits.file_mb, 64).saturating_mul(MEGABYTE),
        open_files: number(|limits| &limits.open_files, 64),
        processes: number(|limits| &limits.processes, 64),
    }
}
