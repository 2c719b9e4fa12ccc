//! Checks a process tool: command, environment and limits.

use super::ToolCheck;
use crate::check::endpoint::expansion;
use crate::check::report::{FileReport, value_or, word};
use crate::finding::KnownNames;
use crate::pack::tool::{ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, ToolKind};
use crate::source::tool::LimitsSource;
use crate::text::wording::{did_you_mean, one_line};
use crate::yaml::Located;

/// The default of `timeout_ms`.
pub(super) const TIMEOUT_MS: u64 = 30_000;
/// The default of `output_bytes_max`: a model reads the whole output.
const OUTPUT_BYTES_MAX: u64 = 1 << 16;
const MEGABYTE: u64 = 1 << 20;

/// Shells, which read a script from an argument.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

impl ToolCheck<'_> {
    pub(super) fn process(&mut self) -> ToolKind {
        let (source, vars) = (self.source, self.context.vars);
        let report = &mut self.report;
        let example = "command: [wc, \"-w\"]";
        let words = report.require(&source.command, "command", self.position, example);
        let command = words.map(|words| {
            let command = expansion::command(report, words, Some(&self.fields), vars);
            warn_shell_script(report, &words.value);
            command
        });
        let env = source.env.as_ref();
        let env = env.map(|pairs| expansion::environment(report, &pairs.value, vars));
        ToolKind::Process(ProcessDef {
            command: command.unwrap_or_default(),
            env: env.unwrap_or_default(),
            stdin: stdin(report, source.stdin.as_ref(), &self.fields),
            output: word(&source.output).unwrap_or(ProcessOutput::Text),
            output_bytes_max: value_or(&source.output_bytes_max, OUTPUT_BYTES_MAX),
            limits: process_limits(source.limits.as_ref().map(|limits| &limits.value)),
        })
    }
}

/// What the program reads: `input`, `none`, or a text with fields of the input.
fn stdin(
    report: &mut FileReport<'_>,
    source: Option<&Located<String>>,
    fields: &KnownNames,
) -> ProcessStdin {
    let Some(written) = source else {
        return ProcessStdin::Input;
    };
    match written.value.as_str() {
        "input" => ProcessStdin::Input,
        "none" => ProcessStdin::None,
        template => {
            if template.contains("${") {
                let message = "`stdin` has a variable, and only fields of the input are filled in";
                let instead = "the variable in `env` or `command`";
                report.error(written.position, message, instead);
            } else if expansion::fields(template).next().is_none() {
                let message = format!("unknown stdin `{}`", one_line(template));
                let instead = "one of `input`, `none`, or a text with a `{field}` of the input";
                let (message, instead) =
                    did_you_mean(message, template, ["input", "none"], instead);
                report.error(written.position, message, instead);
            } else {
                expansion::check_fields(report, written, template, fields);
            }
            ProcessStdin::Template(template.to_owned())
        }
    }
}

/// Warns of a field inside the script of a shell: the shell would run what a model writes.
fn warn_shell_script(report: &mut FileReport<'_>, words: &[Located<String>]) {
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
        let instead =
            format!("`\"$1\"` in the script, and `{name}, \"{{{field}}}\"` as the next two words");
        report.warning(script.position, message, instead);
    }
}

fn process_limits(source: Option<&LimitsSource>) -> ProcessLimits {
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
