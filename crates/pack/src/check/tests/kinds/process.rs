//! Process tools.

use super::*;

const COMMAND: &str = "[wc, \"-w\", \"--files={file}\", \"{print $1}\", \"${SECRET}\"]";

#[test]
fn malformed_command_is_refused() {
    let many = format!("[wc{}]", ", a".repeat(64));
    table(
        "tools.yaml",
        &[
            (
                COMMAND,
                "[]",
                &[
                    "40:14: error: `command` is empty; write: `command: …` (`process`: the program and its arguments, which no shell reads; `{field}` in an argument stands for a field of the input, `${NAME}` for a variable)",
                ],
            ),
            (
                COMMAND,
                "[\" \"]",
                &["40:15: error: the program of `command` is empty; write: its name or its path"],
            ),
            (
                "    command: [cat]\n",
                "",
                &["48:5: error: `command` is missing; write: `command: [wc, \"-w\"]`"],
            ),
            (
                COMMAND,
                "[\"{file}\"]",
                &[
                    "40:15: error: the program itself cannot be a field of the input; write: the program; `{field}` only in its arguments",
                ],
            ),
            (
                COMMAND,
                "[bin/wc]",
                &[
                    "40:15: error: the program is a path that does not begin with `/`; write: a name that is found in PATH, or the path from `/` on",
                ],
            ),
            (
                COMMAND,
                "[\"wc -w\"]",
                &[
                    "40:15: warning: the program has a space in its name: no shell reads it; write: each word of its own: `command: [wc, \"-w\"]`",
                ],
            ),
            (
                COMMAND,
                "[wc, \"{fil}\"]",
                &["40:19: error: `{fil}` is no property of `input_schema`, did you mean `{file}`?"],
            ),
            (
                COMMAND,
                "[wc, \"${BRACES}\"]",
                &[
                    "40:19: error: a variable has something in braces in it, as only a field of the input has; write: the variable without `{` and `}`",
                ],
            ),
            (
                COMMAND,
                "[wc, \"${LONG}\"]",
                &[
                    "40:19: error: this cannot be a word of a command; write: text, at most 16384 bytes of it",
                ],
            ),
            (
                COMMAND,
                "[wc, \"${NONE}\"]",
                &[
                    "40:19: error: the variable `NONE` is not set; write: `${NONE:-…}` for a default, or set NONE before the start",
                ],
            ),
            (
                COMMAND,
                "[/bin/sh, -ec, \"wc -w {file}\"]",
                &[
                    "40:29: warning: `{file}` stands inside the script of a shell: what a model puts there is run; write: `\"$1\"` in the script, and `sh, \"{file}\"` as the next two words",
                ],
            ),
            (COMMAND, "[sh, -c, 'wc -w \"$1\"', sh, \"{file}\"]", &[]),
            (
                COMMAND,
                &many,
                &["40:208: error: `command` has more than 64 entries; write: fewer"],
            ),
        ],
    );
}

#[test]
fn malformed_environment_is_refused() {
    let env = "LANG: C, ";
    table(
        "tools.yaml",
        &[
            (
                env,
                "MY-LANG: C, ",
                &[
                    "41:11: error: `MY-LANG` is not a valid variable name; write: letters, digits and `_`, for example `LANG`",
                ],
            ),
            (
                env,
                "LANG: \"a\\nb\", ",
                &[
                    "41:17: error: this cannot be the value of a variable; write: text on one line, at most 16384 bytes",
                ],
            ),
            (
                env,
                "KEY: sk-abc, ",
                &[
                    "41:16: error: this looks like a key, and a key is never written into a pack; write: `${NAME}`, with the key in the variable `NAME`",
                ],
            ),
        ],
    );
}

#[test]
fn process_limits_are_checked() {
    table(
        "tools.yaml",
        &[
            (
                "cpu_s: 600",
                "cpu_s: 601",
                &["45:21: error: `cpu_s` is 601; write: a number from 1 to 600"],
            ),
            (
                "memory_mb: 16384",
                "memory_mb: 15",
                &["45:37: error: `memory_mb` is 15; write: a number from 16 to 16384"],
            ),
            (
                "file_mb: 0",
                "file_mb: 5000",
                &["45:53: error: `file_mb` is 5000; write: a number from 0 to 4096"],
            ),
            (
                "open_files: 1024",
                "open_files: 7",
                &["45:68: error: `open_files` is 7; write: a number from 8 to 1024"],
            ),
            (
                "processes: 4096",
                "processes: 0",
                &["45:85: error: `processes` is 0; write: a number from 1 to 4096"],
            ),
            (
                "cpu_s: 600",
                "cpu: 600",
                &[
                    "45:14: error: unknown field `cpu`; write: one of `cpu_s`, `memory_mb`, `file_mb`, `open_files`, `processes`",
                ],
            ),
            (
                "output_bytes_max: 1048576",
                "output_bytes_max: 1048577",
                &["44:23: error: `output_bytes_max` is 1048577; write: a number from 1 to 1048576"],
            ),
            (
                "timeout_ms: 600000\n  - name: plain",
                "timeout_ms: 600001\n  - name: plain",
                &["47:17: error: `timeout_ms` is 600001; write: a number from 1 to 600000"],
            ),
            (
                "stdin: none",
                "stdin: nothing",
                &[
                    "42:12: error: unknown stdin `nothing`; write: one of `input`, `none`, or a text with a `{field}` of the input",
                ],
            ),
            (
                "stdin: none",
                "stdin: \"{fil}\"",
                &["42:12: error: `{fil}` is no property of `input_schema`, did you mean `{file}`?"],
            ),
            (
                "stdin: none",
                "stdin: \"${SECRET}\"",
                &[
                    "42:12: error: `stdin` has a variable, and only fields of the input are filled in; write: the variable in `env` or `command`",
                ],
            ),
            ("stdin: none", "stdin: \"{file}\"", &[]),
            (
                "output: json",
                "output: jsn",
                &["43:13: error: unknown output `jsn`, did you mean `json`?"],
            ),
        ],
    );
}
