//! Process tools without a guard: what is run, and what the model is told of it.

use serde_json::json;
use turnwire_event::port::{Part, Refusal, Wards};
use turnwire_pack::ToolKind;

use super::*;
use crate::guard::frame::End;
use crate::stage::{Sink, call, workshop};

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

fn tool(process: ProcessDef) -> Result<Process, BadProcess> {
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
    Process::new(&def, &process, &workshop())
}

fn done(how: How, output: &[u8]) -> Done {
    Done {
        end: End::unstarted(how),
        output: output.to_vec(),
        over: false,
    }
}

#[test]
fn what_cannot_be_run_is_named_when_the_tool_is_made() {
    let told = |command: &[&str]| tool(process(command)).err().map(|bad| bad.to_string());
    assert_eq!(told(&["sh", "-c", "{q}"]), None);
    assert_eq!(
        told(&[]).as_deref(),
        Some("its command is empty; write the program and its arguments")
    );
    assert_eq!(
        told(&["{q}"]).as_deref(),
        Some("its program `{q}` may not have a place for a field; only arguments may")
    );
    let missing = "there is no program `no-such-program`; install it, or write the absolute path \
                   of a file that can be run";
    assert_eq!(told(&["no-such-program"]).as_deref(), Some(missing));
    for path in ["./sh", "/etc", "/etc/passwd"] {
        assert!(told(&[path]).is_some(), "{path}");
    }
}

#[test]
fn a_tool_says_what_the_pack_says_and_has_time_to_end_its_program() {
    let tool = tool(process(&["sh"])).expect("a tool");
    assert_eq!(tool.name(), "run");
    assert_eq!(tool.tool_type(), ToolType::Process);
    assert!(tool.approval());
    assert_eq!(tool.timeout(), Some(Duration::from_millis(11_500)));
}

#[test]
fn arguments_and_input_come_from_the_model_and_nothing_else_does() {
    let mut process = process(&["sh", "-c", "--n={n}", "{missing}", "{q}"]);
    process.stdin = ProcessStdin::Input;
    process.env = vec![("KEY".to_owned(), "{q}".to_owned())];
    let tool = tool(process).expect("a tool");
    let input = json!({"q": "a b", "n": 5});
    let call = call(input.clone(), &Sink::with_room(0));
    let spec = tool.plan.spec(&call).expect("a spec");
    assert!(spec.program.ends_with("/sh"), "{}", spec.program);
    assert_eq!(spec.args, ["-c", "--n=5", "a b"]);
    assert_eq!(spec.env, [("KEY".to_owned(), "{q}".to_owned())]);
    assert_eq!(spec.input, Some(input.to_string()));
    let name = call.scene.session_id.to_string();
    assert!(spec.dir.ends_with(name), "{:?}", spec.dir);
    let limits = Limits {
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
fn a_result_is_words_or_json_as_the_pack_says() {
    let text = tool(process(&["sh"])).expect("a tool").plan;
    let given = |plan: &Plan, output: &[u8]| plan.result(done(How::Code(0), output));
    assert_eq!(given(&text, b"hello\n"), Ok(json!("hello")));
    assert_eq!(given(&text, b""), Ok(json!("")));
    assert_eq!(given(&text, b"\xff\n\n"), Ok(json!("\u{fffd}\n")));
    let mut of_json = process(&["sh"]);
    of_json.output = ProcessOutput::Json;
    let json_plan = tool(of_json).expect("a tool").plan;
    assert_eq!(given(&json_plan, b" {\"a\": 1}\n"), Ok(json!({"a": 1})));
    for bad in [&b""[..], b"{", b"{} {}", b"\xff"] {
        let failure = given(&json_plan, bad).expect_err("no JSON");
        assert_eq!(failure.told, "The program wrote something else than JSON.");
    }
}

#[test]
fn g6_a_key_of_the_environment_is_in_no_result_and_no_failure() {
    let key = "sk-of-a-program";
    let plan = |output| {
        let mut process = process(&["sh"]);
        process.env = vec![
            ("SERVICE_TOKEN".to_owned(), key.to_owned()),
            ("REGION".to_owned(), "north-east".to_owned()),
        ];
        process.output = output;
        tool(process).expect("a tool").plan
    };
    let text = plan(ProcessOutput::Text);
    let given = text.result(done(
        How::Code(0),
        b"SERVICE_TOKEN=sk-of-a-program in north-east",
    ));
    assert_eq!(given, Ok(json!("SERVICE_TOKEN=*** in north-east")));
    let given = plan(ProcessOutput::Json)
        .result(done(How::Code(0), b"{\"k\": [\"\\u0073k-of-a-program\"]}"));
    assert_eq!(given, Ok(json!({"k": ["***"]})));
    // Also where it stands at the end of what is shown.
    let long = format!("{}{key}", "x".repeat(SHOWN_BYTES_MAX - 5));
    let failure = text.result(done(How::Code(1), long.as_bytes()));
    let told = failure.expect_err("a failure").told;
    assert!(!told.contains("sk-"), "{told}");
}

#[test]
fn a_failure_is_told_in_words_without_paths() {
    let plan = tool(process(&["sh"])).expect("a tool").plan;
    let told = |how, output: &[u8]| plan.result(done(how, output)).expect_err("a failure").told;
    assert_eq!(told(How::Code(3), b""), "The program ended with code 3.");
    assert_eq!(
        told(How::Code(1), b" no such city\n"),
        "The program ended with code 1. It wrote:\nno such city"
    );
    let long = told(How::Code(1), &[b'x'; 10_000]);
    assert!(long.len() < 2_200, "{}", long.len());
    assert_eq!(
        told(How::Signal(9), b""),
        "The program was ended by signal 9."
    );
    assert_eq!(
        told(How::MissingProgram, b""),
        "The program of this tool is not there."
    );
    let mut cut = done(How::Code(0), b"half");
    cut.end.cut = true;
    assert_eq!(
        plan.result(cut).expect_err("a failure").told,
        "What the program wrote could not be read to its end. It wrote:\nhalf"
    );
    let over = Done {
        over: true,
        ..done(How::Signal(15), b"x")
    };
    assert_eq!(
        plan.result(over).expect_err("a failure").told,
        "The program wrote more than 1000 bytes and was ended."
    );
}

#[tokio::test]
async fn without_a_guard_nothing_runs() {
    let tool = tool(process(&["sh", "-c", "true"])).expect("a tool");
    let failure = tool.run(call(json!({}), &Sink::with_room(0))).await;
    assert_eq!(
        failure.expect_err("no guard").told,
        "The program of this tool could not be started."
    );
}

/// Takes nothing any more, or everything; and lets what was taken begin, or not.
struct Gate(Result<(), Refusal>, Result<(), Refusal>);

impl Wards for Gate {
    fn enter(&self) -> Result<Part, Refusal> {
        self.1.map(|()| Box::new(()) as Part)
    }

    fn take(&self, ward: Ward) -> Result<(), Refusal> {
        assert_eq!(ward.id.get(), None, "it has not begun to be");
        self.0
    }
}

#[tokio::test]
async fn r_17_a_turn_that_is_to_stop_starts_no_program() {
    let stop = Err(Refusal::Cancelled);
    for (taken, entered, class) in [
        // The turn is about to be dropped: until then nothing is told.
        (stop, Ok(()), None),
        // The stop came while it waited for its slot.
        (Ok(()), stop, None),
        (
            Err(Refusal::Unavailable),
            Ok(()),
            Some(ToolErrorClass::Internal),
        ),
        // It gets as far as the guard, of which there is none here.
        (Ok(()), Ok(()), Some(ToolErrorClass::Internal)),
    ] {
        let mut call = call(json!({}), &Arc::default());
        let scene = Arc::get_mut(&mut call.scene).expect("nobody else has it");
        scene.wards = Arc::new(Gate(taken, entered));
        let run = tool(process(&["true"])).expect("a tool").run(call);
        let given = tokio::time::timeout(Duration::from_millis(100), run).await;
        let class_given = given
            .ok()
            .map(|given| given.expect_err("it does not run").class);
        assert_eq!(class_given, class, "{taken:?}, {entered:?}");
    }
}
