//! Process tools without a guard: the program they run, and the result for the model.

use serde_json::json;
use turnwire_event::port::{ChildTaskRegistry, EmitRefusal, TaskPermit};
use turnwire_pack::ToolKind;

use super::*;
use crate::program::guard::frame::ProgramEnded;
use crate::tests::support::{EventSink, call, runner};
use crate::tool::Tool as _;

fn process(command: &[&str]) -> ProcessDef {
    ProcessDef {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        env: Vec::new(),
        stdin: ProcessStdin::None,
        output: ProcessOutput::Text,
        output_bytes_max: 1_000,
        limits: ProcessLimits {
            cpu_s: 30,
            memory_bytes: 512 << 20,
            file_bytes: 0,
            open_files: 64,
            processes: 16,
        },
    }
}

fn build(process: ProcessDef) -> Result<PackTool, String> {
    let def = ToolDef {
        name: "run".to_owned(),
        description: "Runs.".to_owned(),
        kind: ToolKind::Process(process.clone()),
        input_schema: json!({"type": "object"}),
        status: None,
        timeout_ms: Some(1_500),
        remember: false,
        approval: true,
        progress_status: None,
    };
    ProcessTool::build(&def, &process, &runner(), &Secrets::default())
}

fn action(process: &ProcessDef) -> ProcessTool {
    ProcessTool::new(
        process,
        Duration::from_secs(1),
        &runner(),
        &Secrets::default(),
    )
    .expect("a tool")
}

fn finished(exit: ProgramExit, output: &[u8]) -> FinishedProgram {
    FinishedProgram {
        end: ProgramEnded::unstarted(exit),
        output: output.to_vec(),
        output_too_large: false,
    }
}

#[test]
fn missing_program_is_a_build_error() {
    let message = |command: &[&str]| build(process(command)).err();
    assert_eq!(message(&["sh", "-c", "{q}"]), None);
    assert_eq!(
        message(&[]).as_deref(),
        Some("its command is empty; write the program and its arguments")
    );
    assert_eq!(
        message(&["{q}"]).as_deref(),
        Some("its program `{q}` may not have a field; only arguments may")
    );
    let missing = "there is no program `no-such-program`; install it, or write the absolute path \
                   of a file that can be run";
    assert_eq!(message(&["no-such-program"]).as_deref(), Some(missing));
    for path in ["./sh", "/etc", "/etc/passwd"] {
        assert!(message(&[path]).is_some(), "{path}");
    }
}

#[test]
fn timeout_of_a_tool_includes_the_grace_period() {
    let tool = build(process(&["sh"])).expect("a tool");
    assert_eq!(tool.name(), "run");
    assert_eq!(tool.tool_type(), ToolType::Process);
    assert!(tool.approval());
    assert_eq!(tool.timeout(), Some(Duration::from_millis(11_500)));
}

#[test]
fn arguments_and_stdin_come_from_the_input() {
    let mut process = process(&["sh", "-c", "--n={n}", "{missing}", "{q}"]);
    process.stdin = ProcessStdin::Input;
    process.env = vec![("KEY".to_owned(), "{q}".to_owned())];
    let action = action(&process);
    let input = json!({"q": "a b", "n": 5});
    let call = call(input.clone(), &EventSink::with_room(0));
    let spec = action.spec(&call).expect("a spec");
    assert!(spec.program.ends_with("/sh"), "{}", spec.program);
    assert_eq!(spec.args, ["-c", "--n=5", "a b"]);
    assert_eq!(spec.env, [("KEY".to_owned(), "{q}".to_owned())]);
    assert_eq!(spec.input, Some(input.to_string()));
    let name = call.context.session_id.to_string();
    assert!(spec.dir.ends_with(name), "{:?}", spec.dir);
    let limits = ProgramLimits {
        cpu_s: Some(30),
        memory_bytes: Some(512 << 20),
        // It writes no file, which is not the same as no limit.
        file_bytes: Some(0),
        files: Some(64),
        processes: Some(16),
    };
    assert_eq!(spec.limits, limits);
}

#[test]
fn stdin_template_is_filled_with_fields_of_the_input() {
    let mut process = process(&["wc", "-w"]);
    process.stdin = ProcessStdin::Template("{text}{missing}: {n}\n".to_owned());
    let input = json!({"text": "-one \"two\"\nthree", "n": 5});
    let call = call(input, &EventSink::with_room(0));
    let spec = action(&process).spec(&call).expect("a spec");
    assert_eq!(spec.input.as_deref(), Some("-one \"two\"\nthree: 5\n"));
}

#[test]
fn output_is_text_or_json_as_defined() {
    let text = action(&process(&["sh"]));
    let result =
        |action: &ProcessTool, output: &[u8]| action.result(finished(ProgramExit::Code(0), output));
    assert_eq!(result(&text, b"hello\n"), Ok(json!("hello")));
    assert_eq!(result(&text, b""), Ok(json!("")));
    assert_eq!(result(&text, b"\xff\n\n"), Ok(json!("\u{fffd}\n")));
    let mut of_json = process(&["sh"]);
    of_json.output = ProcessOutput::Json;
    let json_action = action(&of_json);
    assert_eq!(result(&json_action, b" {\"a\": 1}\n"), Ok(json!({"a": 1})));
    for bad in [&b""[..], b"{", b"{} {}", b"\xff"] {
        let failure = result(&json_action, bad).expect_err("no JSON");
        assert_eq!(failure.message, "The output of the program is not JSON.");
    }
}

// G6
#[test]
fn key_of_the_environment_is_removed() {
    let key = "sk-of-a-program";
    let with_output = |output| {
        let mut process = process(&["sh"]);
        process.env = vec![
            ("SERVICE_TOKEN".to_owned(), key.to_owned()),
            ("REGION".to_owned(), "north-east".to_owned()),
        ];
        process.output = output;
        action(&process)
    };
    let text = with_output(ProcessOutput::Text);
    let result = text.result(finished(
        ProgramExit::Code(0),
        b"SERVICE_TOKEN=sk-of-a-program in north-east",
    ));
    assert_eq!(result, Ok(json!("SERVICE_TOKEN=*** in north-east")));
    let result = with_output(ProcessOutput::Json).result(finished(
        ProgramExit::Code(0),
        b"{\"k\": [\"\\u0073k-of-a-program\"]}",
    ));
    assert_eq!(result, Ok(json!({"k": ["***"]})));
    // Also at the cut of the output.
    let long = format!("{}{key}", "x".repeat(FAILED_OUTPUT_BYTES_MAX - 5));
    let failure = text.result(finished(ProgramExit::Code(1), long.as_bytes()));
    let message = failure.expect_err("a failure").message;
    assert!(!message.contains("sk-"), "{message}");
}

#[test]
fn failure_has_no_path() {
    let action = action(&process(&["sh"]));
    let message = |exit, output: &[u8]| {
        action
            .result(finished(exit, output))
            .expect_err("a failure")
            .message
    };
    assert_eq!(
        message(ProgramExit::Code(3), b""),
        "The program exited with code 3."
    );
    assert_eq!(
        message(ProgramExit::Code(1), b" no such city\n"),
        "The program exited with code 1. It wrote:\nno such city"
    );
    let long = message(ProgramExit::Code(1), &[b'x'; 10_000]);
    assert!(long.len() < 2_200, "{}", long.len());
    assert_eq!(
        message(ProgramExit::Signal(9), b""),
        "The program was ended by signal 9."
    );
    assert_eq!(
        message(ProgramExit::MissingProgram, b""),
        "The program of this tool is missing."
    );
    let mut truncated = finished(ProgramExit::Code(0), b"half");
    truncated.end.truncated = true;
    assert_eq!(
        action.result(truncated).expect_err("a failure").message,
        "The output of the program could not be read to its end. It wrote:\nhalf"
    );
    let too_large = FinishedProgram {
        output_too_large: true,
        ..finished(ProgramExit::Signal(15), b"x")
    };
    assert_eq!(
        action.result(too_large).expect_err("a failure").message,
        "The program wrote more than 1000 bytes and was ended."
    );
}

#[tokio::test]
async fn missing_guard_is_a_tool_failure() {
    let tool = build(process(&["sh", "-c", "true"])).expect("a tool");
    let failure = tool.run(call(json!({}), &EventSink::with_room(0))).await;
    assert_eq!(
        failure.expect_err("no guard").message,
        "The program of this tool could not be started."
    );
}

/// Registers programs, or not; and lets registered ones start, or not.
struct FixedRegistry(Result<(), EmitRefusal>, Result<(), EmitRefusal>);

impl ChildTaskRegistry for FixedRegistry {
    fn enter(&self) -> Result<TaskPermit, EmitRefusal> {
        self.1.map(|()| Box::new(()) as TaskPermit)
    }

    fn track(&self, task: ChildTask) -> Result<(), EmitRefusal> {
        assert_eq!(task.id.get(), None, "the program has not started");
        self.0
    }
}

//
#[tokio::test]
async fn cancelled_turn_starts_no_program() {
    let stop = Err(EmitRefusal::Cancelled);
    for (registered, entered, class) in [
        // The turn is about to be dropped: the future never completes.
        (stop, Ok(()), None),
        // The cancel came during the wait for a slot.
        (Ok(()), stop, None),
        (
            Err(EmitRefusal::Unavailable),
            Ok(()),
            Some(ToolErrorClass::Internal),
        ),
        // The runner has no guard.
        (Ok(()), Ok(()), Some(ToolErrorClass::Internal)),
    ] {
        let mut call = call(json!({}), &Arc::default());
        let context = Arc::get_mut(&mut call.context).expect("the only reference");
        context.child_tasks = Arc::new(FixedRegistry(registered, entered));
        let run = build(process(&["true"])).expect("a tool").run(call);
        let result = tokio::time::timeout(Duration::from_millis(100), run).await;
        let actual = result
            .ok()
            .map(|result| result.expect_err("it does not run").class);
        assert_eq!(actual, class, "{registered:?}, {entered:?}");
    }
}
