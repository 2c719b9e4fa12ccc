//! What reaches a tool and what does not.

use std::sync::atomic::{AtomicUsize, Ordering};

use turnwire_event::code::ToolErrorClass;

use super::*;
use crate::stage::{Sink, call};

/// Says everything of itself in a way that a default would not, and counts its runs.
struct Counts {
    schema: Value,
    runs: Arc<AtomicUsize>,
}

impl Tool for Counts {
    fn name(&self) -> &str {
        "counts"
    }

    fn description(&self) -> &str {
        "Counts."
    }

    fn input_schema(&self) -> Value {
        self.schema.clone()
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Render
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(7))
    }

    fn status(&self) -> Option<&str> {
        Some("counting")
    }

    fn remember(&self) -> bool {
        true
    }

    fn approval(&self) -> bool {
        true
    }

    fn server(&self) -> Option<&str> {
        Some("abacus")
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(call.input) })
    }
}

fn checked(schema: Value) -> Result<(Checked, Arc<AtomicUsize>), BadSchema> {
    let runs = Arc::<AtomicUsize>::default();
    let inner = Counts {
        schema,
        runs: Arc::clone(&runs),
    };
    Ok((Checked::new(Arc::new(inner))?, runs))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 60}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

#[tokio::test]
async fn r_28_only_an_input_that_fits_its_schema_reaches_the_tool() {
    let (tool, runs) = checked(schema()).expect("a schema");
    let sink = Sink::with_room(0);
    for (input, told) in [
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
        let failure = tool.run(call(input, &sink)).await.expect_err("no fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        assert!(!failure.fatal, "the model may try again");
        assert!(failure.told.contains(told), "{}", failure.told);
        assert!(failure.told.chars().count() <= TOLD_CHARS_MAX);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    let fits = json!({"city": "Wien", "days": 2});
    assert_eq!(tool.run(call(fits.clone(), &sink)).await, Ok(fits));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn nothing_is_begun_before_the_future_is_polled() {
    let (tool, runs) = checked(schema()).expect("a schema");
    drop(tool.run(call(json!({"city": "Wien"}), &Sink::with_room(0))));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[test]
fn it_speaks_for_the_tool_inside() {
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
fn a_schema_that_is_none_is_named_when_the_tool_is_made() {
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
        let why = checked(schema.clone()).err();
        let why = why.unwrap_or_else(|| panic!("{schema} is no schema"));
        assert!(why.0.chars().count() <= TOLD_CHARS_MAX, "{why}");
    }
}

#[tokio::test]
async fn f14_an_input_that_would_take_for_ever_to_check_is_not_checked() {
    let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let schema = json!({"type": "object", "additionalProperties": twice});
    let (tool, runs) = checked(schema).expect("a schema");
    let sink = Sink::with_room(0);
    let deep = |depth| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    let failure = tool.run(call(deep(60), &sink)).await.expect_err("too deep");
    assert_eq!(failure.class, ToolErrorClass::InvalidInput);
    assert!(failure.told.contains("write a simpler one"));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert!(tool.run(call(deep(6), &sink)).await.is_ok());
}

#[test]
fn a_schema_that_takes_for_ever_is_named_when_the_tool_is_made() {
    let mut defs = serde_json::Map::new();
    defs.insert("d0".to_owned(), json!({"type": "object"}));
    for at in 1..=30 {
        let before = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        defs.insert(format!("d{at}"), json!({"allOf": [before, before]}));
    }
    let why = checked(json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d30"}));
    let why = why.map(|_| ()).expect_err("too much");
    assert!(why.0.contains("more than 20000 steps"), "{why}");
}

#[test]
fn a_pattern_that_looks_around_is_left_to_a_tool_that_checks_again() {
    let schema = json!({
        "type": "object",
        "properties": {"to": {"type": "string", "pattern": "^(?!x)a", "maxLength": 9}},
        "patternProperties": {"^(?!to)": {"type": "integer"}},
        "additionalProperties": false,
    });
    let why = InputSchema::new(&schema).map(|_| ()).expect_err("not here");
    assert!(
        why.0.contains("has a look-around or a back-reference"),
        "{why}"
    );
    let again = InputSchema::checked_again(&schema).expect("a schema");
    assert_eq!(again.text(), &schema);
    assert_eq!(again.check(&json!({"to": "xa", "other": 5})), Ok(()));
    assert!(again.check(&json!({"to": "longer than nine"})).is_err());
}
