//! F14: process tools as an agent calls them, with guards of the real binary: the result for the
//! model, and that a call ends only after its program.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_dial::Dialer;
use turnwire_event::code::{ReceiptKind, StopOutcome, ToolErrorClass};
use turnwire_event::port::{
    BoxFuture, ChildTask, ChildTaskRegistry, Emission, EmitError, EmitRefusal, EventEmitter,
    MessageEnd, NoChildTasks,
};
use turnwire_event::{
    Clock, ContentBlock, EpisodeId, IdGenerator, Owner, Position, SessionId, TenantId, Timestamp,
    ToolUseId, TurnId, Ulid,
};
use turnwire_pack::{
    PackFiles, ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, ToolDef, ToolKind, check,
};
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms};
use turnwire_tool::{
    Connector, ItemStore, NoVerifier, Secrets, ServiceCredentials, Tool, ToolBuildError,
    ToolContext, ToolDependencies, ToolFailure, ToolInvocation, build_toolbox,
};

use crate::workshop::{GRACE, Shop, WITHIN, row};

/// A clock, an id generator and an emitter that no process tool uses.
struct Unused;

impl Clock for Unused {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }
}

impl IdGenerator for Unused {
    fn ulid(&self) -> Ulid {
        Ulid(9)
    }
}

impl EventEmitter for Unused {
    fn emit(&self, _: Emission) -> Result<Position, EmitError> {
        Err(EmitRefusal::Ended.into())
    }

    fn complete(&self, _: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        Err(EmitRefusal::Ended)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn committed(&self, _: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        Box::pin(std::future::ready(Err(EmitRefusal::Ended)))
    }
}

/// Keeps what a turn would wait for.
#[derive(Default)]
struct RecordedEvents(Mutex<Vec<ChildTask>>);

impl ChildTaskRegistry for RecordedEvents {
    fn track(&self, ward: ChildTask) -> Result<(), EmitRefusal> {
        self.0.lock().expect("a lock").push(ward);
        Ok(())
    }
}

impl RecordedEvents {
    fn one(&self) -> ChildTask {
        let mut wards = self.0.lock().expect("a lock");
        assert_eq!(wards.len(), 1);
        wards.remove(0)
    }
}

/// A tool with the wards of its turn.
struct ToolFixture {
    shop: Shop,
    tool: Arc<dyn Tool>,
    wards: Arc<RecordedEvents>,
}

fn process<T: AsRef<str>>(command: &[T]) -> ProcessDef {
    ProcessDef {
        command: command
            .iter()
            .map(|word| word.as_ref().to_owned())
            .collect(),
        env: Vec::new(),
        stdin: ProcessStdin::Input,
        output: ProcessOutput::Text,
        output_bytes_max: 10_000,
        limits: ProcessLimits {
            cpu_s: 20,
            memory_bytes: 1_000_000_000,
            file_bytes: 1_000_000,
            open_files: 100,
            processes: 50,
        },
    }
}

fn make(shop: Shop, process: ProcessDef, limit: Duration) -> Result<ToolFixture, ToolBuildError> {
    let report = check(&PackFiles::market(), &|_| None);
    let mut pack = report.pack.expect("the pack that is built in");
    pack.tools.push(ToolDef {
        name: "run".to_owned(),
        description: "Runs a program.".to_owned(),
        kind: ToolKind::Process(process),
        input_schema: json!({"type": "object", "properties": {"word": {"type": "string"}}}),
        status: None,
        timeout_ms: Some(u64::try_from(limit.as_millis()).expect("a limit")),
        remember: false,
        approval: false,
        progress_status: None,
    });
    let dialer = Arc::new(Dialer::new(turnwire_dial::DialerOptions::default()).expect("a dialer"));
    let connector = Connector::new(
        &pack,
        Arc::clone(&dialer),
        &|_, _| Ok(ServiceCredentials::default()),
        &|_, _| Err(String::new()),
        Arc::new(NoVerifier),
    );
    let Shop { dir, workshop } = shop;
    let workshop = Arc::new(workshop);
    let dependencies = ToolDependencies {
        keys: Secrets::default(),
        connector: Arc::new(connector.expect("a connector")),
        clock: Arc::new(Unused),
        id_generator: Arc::new(Unused),
        dialer,
        runner: Arc::clone(&workshop),
        mcp_toolset: Arc::default(),
    };
    let tools = build_toolbox(&pack, &["run".to_owned()], &dependencies)?;
    drop(dependencies);
    let tool = Arc::clone(tools.get("run").expect("the tool"));
    let shop = Shop {
        workshop: crate::workshop::at(dir.path(), GRACE),
        dir,
    };
    Ok(ToolFixture {
        shop,
        tool,
        wards: Arc::default(),
    })
}

/// A tool that runs `command`.
fn bench<T: AsRef<str>>(command: &[T]) -> ToolFixture {
    make(Shop::open(), process(command), WITHIN).expect("a tool")
}

impl ToolFixture {
    fn run(&self, input: Value) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        self.tool.run(ToolInvocation {
            tool_use_id: ToolUseId(Ulid(7)),
            input,
            emitter: Arc::new(Unused),
            context: Arc::new(ToolContext {
                delegate: Arc::new(NoChildTasks),
                child_tasks: Arc::clone(&self.wards) as Arc<dyn ChildTaskRegistry>,
                owner: Owner {
                    tenant: TenantId(0),
                    principal: "user-42".parse().expect("a principal"),
                },
                session_id: SessionId(Ulid(1)),
                turn_id: TurnId(Ulid(2)),
                episode_id: EpisodeId(Ulid(3)),
                locale: "en".to_owned(),
                location: None,
                agent: None,
                trace: None,
                propagation: Default::default(),
                items: ItemStore::new(),
                dimensions: turnwire_event::metric::TurnDimensions::of_definition("market@1"),
            }),
        })
    }
}

#[tokio::test]
async fn program_gets_arguments_and_input_and_returns_text() {
    let bench = bench(&[
        "sh",
        "-c",
        "echo \"$1|$2\"; cat",
        "sh",
        "--word={word}",
        "{word}",
    ]);
    let word = "two words; $(touch hacked) `id` \"";
    let output = bench.run(json!({"word": word})).await;
    let expected = format!("--word={word}|{word}\n{}", json!({"word": word}));
    assert_eq!(output, Ok(json!(expected)));
    let folder = bench.shop.spec(&["true"]).dir;
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 0);
    let ward = bench.wards.one();
    assert_eq!(ward.kind, ReceiptKind::Process);
    assert_eq!(ward.tool_use_id, ToolUseId(Ulid(7)));
    assert_eq!(ward.ended.await, StopOutcome::Finished);
}

#[tokio::test]
async fn invalid_input_starts_no_program() {
    let bench = bench(&["touch", "{word}"]);
    for input in [json!({"word": "--help"}), json!({"word": 5}), json!([])] {
        let failure = bench.run(input).await.expect_err("it does not fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
    }
    assert!(bench.wards.0.lock().expect("a lock").is_empty());
}

#[tokio::test]
async fn program_runs_in_its_session_folder() {
    let bench = bench(&["sh", "-c", "pwd; cat note 2>/dev/null; echo kept > note"]);
    let folder = bench.shop.spec(&["true"]).dir;
    let first = bench.run(json!({})).await.expect("its folder");
    assert_eq!(first, json!(folder.to_str()));
    let second = bench.run(json!({})).await.expect("the same");
    assert_eq!(second, json!(format!("{}\nkept", folder.display())));
}

#[tokio::test]
async fn json_output_and_exit_codes_are_returned() {
    let mut of_json = process(&["sh", "-c", "echo '{\"a\": [1, 2]}'"]);
    of_json.output = ProcessOutput::Json;
    let bench = make(Shop::open(), of_json, WITHIN).expect("a tool");
    assert_eq!(bench.run(json!({})).await, Ok(json!({"a": [1, 2]})));
    let bench = self::bench(&[
        "sh",
        "-c",
        "echo no such city; echo /secret/path >&2; exit 4",
    ]);
    let failure = bench.run(json!({})).await.expect_err("a code");
    assert_eq!(
        failure,
        ToolFailure::internal("The program exited with code 4. It wrote:\nno such city")
    );
}

#[tokio::test]
async fn program_removed_after_start_is_reported_without_path() {
    let programs = StubbornPrograms::new();
    let script = programs.write("short", "exit 0");
    let path = script.to_str().expect("text").to_owned();
    let bench = self::bench(&[&path]);
    std::fs::remove_file(&script).expect("it goes");
    let failure = bench.run(json!({})).await.expect_err("it is not there");
    let expected = "The program of this tool is missing.";
    assert_eq!(failure, ToolFailure::internal(expected));
    let made = make(Shop::open(), process(&[&path]), WITHIN).err();
    assert!(
        matches!(made, Some(ToolBuildError::Definition { .. })),
        "{made:?}"
    );
    let error = made.expect("an error").to_string();
    assert!(error.contains("install it"), "{error}");
}

//
#[tokio::test]
async fn program_over_its_time_is_gone_when_model_learns() {
    for kind in [
        StubbornKind::Silent,
        StubbornKind::IgnoresTerm,
        StubbornKind::Escapee,
        StubbornKind::Stopper,
    ] {
        let programs = StubbornPrograms::new();
        let process = process(&programs.command(kind));
        let limit = Duration::from_millis(1_500);
        let bench = make(Shop::open(), process, limit).expect("a tool");
        let failure = bench.run(json!({})).await.expect_err("too long");
        assert_eq!(programs.processes(), [0; 0], "{kind:?}");
        assert_eq!(failure.class, ToolErrorClass::Timeout);
        assert_eq!(
            failure.message,
            "The program did not finish within 1500 ms and was ended."
        );
    }
}

//
#[tokio::test]
async fn program_with_too_much_output_is_ended_and_reported() {
    let programs = StubbornPrograms::new();
    let bench = bench(&programs.command(StubbornKind::Endless));
    let failure = bench.run(json!({})).await.expect_err("too much");
    assert_eq!(programs.processes(), [0; 0]);
    let expected = "The program wrote more than 10000 bytes and was ended.";
    assert_eq!(failure, ToolFailure::internal(expected));
}

//
#[tokio::test]
async fn dropping_a_call_ends_its_program_and_reports_it() {
    for kind in StubbornKind::ALL
        .into_iter()
        .filter(|kind| *kind != StubbornKind::Leaver)
    {
        let programs = StubbornPrograms::new();
        let mut process = process(&programs.command(kind));
        process.output_bytes_max = u64::MAX;
        let bench = make(Shop::open(), process, WITHIN).expect("a tool");
        let running = tokio::spawn(bench.run(json!({})));
        programs.until_ready(kind.processes()).await;
        running.abort();
        let ward = bench.wards.one();
        let outcome = ward.ended.await;
        assert_eq!(programs.processes(), [0; 0], "{kind:?}");
        assert_ne!(outcome, StopOutcome::Discarded, "{kind:?}");
    }
}

/// Whatever moment it is dropped at, what was begun is known to the turn and ends.
//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_dropped_at_any_moment_leaves_nothing() {
    let programs = StubbornPrograms::new();
    let bench = bench(&programs.command(StubbornKind::Escapee));
    for at in 0..30 {
        let running = tokio::spawn(bench.run(json!({})));
        tokio::time::sleep(Duration::from_millis(2 * at)).await;
        running.abort();
        let _ = running.await;
    }
    let wards = std::mem::take(&mut *bench.wards.0.lock().expect("a lock"));
    assert!(!wards.is_empty());
    let since = Instant::now();
    for ward in wards {
        assert_ne!(ward.ended.await, StopOutcome::Discarded);
        // One that was stopped before its program began has no name.
        if let Some(id) = ward.id.get() {
            assert_eq!(row(id.parse().expect("an id")), None);
        }
    }
    assert_eq!(programs.processes(), [0; 0]);
    assert!(since.elapsed() < WITHIN, "{:?}", since.elapsed());
}
