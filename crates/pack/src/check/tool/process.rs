//! Checks a process tool: the program, what it reads and writes, and what it may take.

use super::super::filled::{self, Vars};
use super::super::page::Page;
use crate::finding::Known;
use crate::place::{At, Place};
use crate::source::tool::{LimitsSource, ToolSource};
use crate::tool::{Output, ProcessDef, ProcessLimits, Stdin, ToolKind};

/// Where the tool does not say.
pub(super) const TIMEOUT_MS: u64 = 30_000;
/// Bytes of what it writes at most: what is larger is no result of a tool.
const OUTPUT_MAX: u64 = 1 << 20;
/// Where the tool does not say: all of it is read by a model.
const OUTPUT: u64 = 1 << 16;
const MEGABYTE: u64 = 1 << 20;

const STDINS: [(&str, Stdin); 2] = [("input", Stdin::Input), ("none", Stdin::None)];
const OUTPUTS: [(&str, Output); 2] = [("text", Output::Text), ("json", Output::Json)];

/// Programs that read a script from an argument.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// Checks it; `known` are the fields of its input.
pub(super) fn check(
    page: &mut Page<'_>,
    home: Place,
    source: &ToolSource,
    known: &Known,
    vars: Vars<'_>,
) -> ToolKind {
    let example = "command: [wc, \"-w\"]";
    let command = match page.needed(&source.command, "command", home, example) {
        Some(words) => {
            let command = filled::command(page, words, Some(known), vars);
            scripted(page, &words.value);
            command
        }
        None => Vec::new(),
    };
    let stdin = source.stdin.as_ref();
    let stdin = stdin.and_then(|word| page.choice(word, "stdin", &STDINS));
    let output = source.output.as_ref();
    let output = output.and_then(|word| page.choice(word, "output", &OUTPUTS));
    let env = source.env.as_ref();
    let limits = source.limits.as_ref().map(|limits| &limits.value);
    ToolKind::Process(ProcessDef {
        command,
        env: env
            .map(|pairs| filled::environment(page, &pairs.value, vars))
            .unwrap_or_default(),
        stdin: stdin.unwrap_or(Stdin::Input),
        output: output.unwrap_or(Output::Text),
        output_bytes_max: page.number(
            &source.output_bytes_max,
            "output_bytes_max",
            (1, OUTPUT_MAX),
            OUTPUT,
        ),
        limits: bounds(page, limits),
    })
}

/// Says so if a field stands inside the script of a shell: what a model writes would be run.
fn scripted(page: &mut Page<'_>, words: &[At<String>]) {
    let [program, flag, script, ..] = words else {
        return;
    };
    let name = program.value.rsplit('/').next().unwrap_or_default();
    let reads = flag.value.starts_with('-') && flag.value.ends_with('c');
    let bare = filled::bare(&script.value);
    let Some(field) = filled::fields(&bare).next() else {
        return;
    };
    if SHELLS.contains(&name) && reads {
        let what = format!(
            "`{{{field}}}` stands inside the script of a shell: what a model puts there is run"
        );
        page.warning(script.place, what).write(format!(
            "`\"$1\"` in the script, and `{name}, \"{{{field}}}\"` as the next two words"
        ));
    }
}

fn bounds(page: &mut Page<'_>, source: Option<&LimitsSource>) -> ProcessLimits {
    let mut number = |of: fn(&LimitsSource) -> &Option<At<u64>>, name: &str, range, default| {
        source.map_or(default, |source| {
            page.number(of(source), name, range, default)
        })
    };
    ProcessLimits {
        // No call is longer than ten minutes.
        cpu_s: number(|limits| &limits.cpu_s, "cpu_s", (1, 600), 30),
        // Below 16 no program starts; above 16 GB it is no tool of a conversation.
        memory_bytes: MEGABYTE
            * number(|limits| &limits.memory_mb, "memory_mb", (16, 16_384), 512).min(16_384),
        // 0: it writes no file. 4 GB fill a disk that is shared.
        file_bytes: MEGABYTE
            * number(|limits| &limits.file_mb, "file_mb", (0, 4_096), 64).min(4_096),
        // Fewer than 8 and its own libraries cannot be opened; 1024 is what a shell is given.
        open_files: number(|limits| &limits.open_files, "open_files", (8, 1_024), 64),
        // Of this program alone: a runtime with its helpers has a few, 4096 are a machine's.
        processes: number(|limits| &limits.processes, "processes", (1, 4_096), 64),
    }
}
