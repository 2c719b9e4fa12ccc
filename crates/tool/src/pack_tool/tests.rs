//! Which inputs reach an action, and what a tool takes from its definition.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use turnwire_event::code::ToolErrorClass;
use turnwire_pack::{
    HttpDef, ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, RenderShape, ToolMethod,
};

use super::*;
use crate::input::{MESSAGE_CHARS_MAX, check_input};
use crate::tests::support::{EventSink, call};

/// A tool with no default values that returns its input, and the number of its runs.
fn checked(schema: Value) -> Result<(PackTool, Arc<AtomicUsize>), String> {
    let runs = Arc::<AtomicUsize>::default();
    let def = ToolDef {
        name: "counts".to_owned(),
        description: "Counts.".to_owned(),
        kind: ToolKind::Delegate {
            agent: "abacus".to_owned(),
        },
        input_schema: schema,
        status: Some("counting".to_owned()),
        timeout_ms: None,
        remember: true,
        approval: true,
        progress_status: None,
    };
    let counter = Arc::clone(&runs);
    let action = move |call: ToolInvocation| {
        let counter = Arc::clone(&counter);
        async move {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(call.input)
        }
    };
    let timeout = Some(Duration::from_secs(7));
    let mut tool = PackTool::new(def, ToolType::Render, timeout, action);
    tool.server = Some("abacus".into());
    Ok((tool.checked()?, runs))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 60}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

//
#[tokio::test]
async fn only_a_valid_input_reaches_the_action() {
    let (tool, runs) = checked(schema()).expect("a schema");
    let sink = EventSink::with_room(0);
    for (input, message) in [
        (json!({}), "\"city\" is a required property"),
        (json!({"city": 5}), "at `/city`"),
        (json!({"city": "Wien", "days": "two"}), "at `/days`"),
        (json!({"city": "Wien", "colour": "red"}), "colour"),
        (json!({"city": "x".repeat(61)}), "/city"),
        (
            json!({"city": "ü".repeat(60_000)}),
            "larger than 65536 bytes",
        ),
        (json!("Wien"), "must be an object"),
        (json!(null), "must be an object"),
        (json!([]), "must be an object"),
    ] {
        let failure = tool.run(call(input, &sink)).await.expect_err("invalid");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert!(!failure.fatal, "the model may try again");
        assert!(failure.message.contains(message), "{}", failure.message);
        assert!(failure.message.chars().count() <= MESSAGE_CHARS_MAX);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    let valid = json!({"city": "Wien", "days": 2});
    assert_eq!(tool.run(call(valid.clone(), &sink)).await, Ok(valid));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn nothing_runs_before_the_future_is_polled() {
    let (tool, runs) = checked(schema()).expect("a schema");
    drop(tool.run(call(json!({"city": "Wien"}), &EventSink::with_room(0))));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[test]
fn tool_has_the_definition_of_the_pack() {
    let (tool, _) = checked(schema()).expect("a schema");
    assert_eq!((tool.name(), tool.description()), ("counts", "Counts."));
    assert_eq!(tool.input_schema(), schema());
    assert_eq!(tool.tool_type(), ToolType::Render);
    assert_eq!(tool.timeout(), Some(Duration::from_secs(7)));
    assert_eq!(tool.status(), Some("counting"));
    assert!(tool.remember() && tool.approval());
    assert_eq!(tool.server(), Some("abacus"));
    let (tool, _) = checked(Value::Null).expect("any object");
    assert_eq!(tool.input_schema(), json!({"type": "object"}));
}

#[test]
fn invalid_schema_is_an_error() {
    for schema in [
        json!({"type": "sideways"}),
        json!({"type": 5}),
        json!({"required": "city"}),
        json!({"properties": []}),
        json!({"properties": {"a": {"pattern": "("}}}),
        json!({"minProperties": -1}),
        json!({"$ref": "http://127.0.0.1:9/schema.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"enum": "x".repeat(10_000)}),
        json!("object"),
        json!([]),
        json!(true),
    ] {
        let error = checked(schema.clone()).err();
        let error = error.unwrap_or_else(|| panic!("{schema} is valid"));
        assert!(error.chars().count() <= MESSAGE_CHARS_MAX, "{error}");
    }
}

// F14
#[tokio::test]
async fn input_that_takes_too_long_to_check_is_rejected() {
    let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let schema = json!({"type": "object", "additionalProperties": twice});
    let (tool, runs) = checked(schema).expect("a schema");
    let sink = EventSink::with_room(0);
    let deep = |depth| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    let failure = tool.run(call(deep(60), &sink)).await.expect_err("too deep");
    assert_eq!(failure.class, ToolErrorClass::InvalidInput);
    assert!(failure.message.contains("write a simpler one"));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert!(tool.run(call(deep(6), &sink)).await.is_ok());
}

#[test]
fn schema_that_takes_too_long_is_an_error() {
    let mut defs = serde_json::Map::new();
    defs.insert("d0".to_owned(), json!({"type": "object"}));
    for level in 1..=30 {
        let lower = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        defs.insert(format!("d{level}"), json!({"allOf": [lower, lower]}));
    }
    let result = checked(json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d30"}));
    let error = result.map(|_| ()).expect_err("too much");
    assert!(error.contains("more than 20000 steps"), "{error}");
}

#[test]
fn hard_patterns_are_left_to_the_tool() {
    let schema = json!({
        "type": "object",
        "properties": {"to": {"type": "string", "pattern": "^(?!x)a", "maxLength": 9}},
        "patternProperties": {"^(?!to)": {"type": "integer"}},
        "additionalProperties": false,
    });
    let error = InputSchema::new(&schema).map(|_| ()).expect_err("not here");
    assert!(
        error.contains("has a look-around or a back-reference"),
        "{error}"
    );
    let schema_without = InputSchema::without_hard_patterns(&schema).expect("a schema");
    assert_eq!(schema_without.text, schema);
    assert_eq!(
        schema_without.check(&json!({"to": "xa", "other": 5})),
        Ok(())
    );
    assert!(
        schema_without
            .check(&json!({"to": "longer than nine"}))
            .is_err()
    );
}

// S2-070
#[test]
fn tools_with_effects_are_known_by_kind() {
    let process = ProcessDef {
        command: vec!["true".to_owned()],
        env: Vec::new(),
        stdin: ProcessStdin::None,
        output: ProcessOutput::Text,
        output_bytes_max: 1,
        limits: ProcessLimits {
            cpu_s: 1,
            memory_bytes: 1,
            file_bytes: 1,
            open_files: 1,
            processes: 1,
        },
    };
    let http = HttpDef {
        method: ToolMethod::Get,
        url: "http://127.0.0.1/".to_owned(),
        query: Vec::new(),
        headers: Vec::new(),
        max_bytes: 1,
        redirects_max: 0,
    };
    let name = String::new;
    let kinds = [
        (
            ToolKind::Ccs {
                enricher_id: name(),
                domain_type: name(),
            },
            false,
        ),
        (
            ToolKind::Render {
                data_type: name(),
                shape: RenderShape::List,
                model_items: false,
            },
            false,
        ),
        (ToolKind::Direct(BuiltinFunction::LlmFeedback), false),
        (ToolKind::Http(http), true),
        (ToolKind::Process(process), true),
        (
            ToolKind::Mcp {
                server: name(),
                tool: name(),
            },
            true,
        ),
        (ToolKind::Delegate { agent: name() }, true),
    ];
    for (kind, expected) in kinds {
        let def = plain_def("acts".to_owned(), "Acts.".to_owned(), kind);
        let action = |call: ToolInvocation| async move { Ok(call.input) };
        let tool = |def| PackTool::new(def, ToolType::Function, None, action);
        assert_eq!(tool(def.clone()).has_effects(), expected, "{:?}", def.kind);
        let approved = ToolDef {
            approval: true,
            ..def
        };
        assert!(tool(approved).has_effects(), "approved by a person");
    }
}

/// A tool without a compiled schema.
struct PayTool(Value);

impl Tool for PayTool {
    fn name(&self) -> &str {
        "pay"
    }

    fn description(&self) -> &str {
        "pays"
    }

    fn input_schema(&self) -> Value {
        self.0.clone()
    }

    fn run(&self, _: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async { Ok(Value::Null) })
    }
}

#[test]
fn check_input_uses_the_schema_and_limits_the_message() {
    let pay = PayTool(json!({
        "type": "object",
        "required": ["cents"],
        "properties": {"cents": {"type": "integer"}},
    }));
    assert_eq!(check_input(&pay, &json!({"cents": 5})), Ok(()));
    let long = "x".repeat(5_000);
    for invalid in [json!({}), json!([]), json!({"cents": long})] {
        let failure = check_input(&pay, &invalid).expect_err("invalid");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert!(failure.message.chars().count() <= MESSAGE_CHARS_MAX);
    }
    let invalid = PayTool(json!({"type": 7}));
    let failure = check_input(&invalid, &json!({})).expect_err("no schema");
    assert_eq!(failure.class, ToolErrorClass::Internal);
}
