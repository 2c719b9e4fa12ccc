//! Whether an input fits a tool, before anyone is asked about it.

use serde_json::Value;

use crate::checked::InputSchema;
use crate::tool::{Tool, ToolFailure};

/// Whether `input` is one that `tool` takes, by its schema alone. What does not fit is told in a
/// sentence the model can act on.
pub fn fits(tool: &dyn Tool, input: &Value) -> Result<(), ToolFailure> {
    if let Some(judged) = tool.judge(input) {
        return judged;
    }
    match InputSchema::new(&tool.input_schema()) {
        Ok(schema) => schema.check(input),
        // A pack with such a tool is refused; without a schema nothing can be said of an input.
        Err(_) => Err(ToolFailure::internal("The tool cannot be used.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_event::code::ToolErrorClass;
    use turnwire_event::port::BoxFuture;

    use super::*;
    use crate::checked::TOLD_CHARS_MAX;
    use crate::tool::Call;

    struct Pay(Value);

    impl Tool for Pay {
        fn name(&self) -> &str {
            "pay"
        }

        fn description(&self) -> &str {
            "pays"
        }

        fn input_schema(&self) -> Value {
            self.0.clone()
        }

        fn run(&self, _: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
            Box::pin(async { Ok(Value::Null) })
        }
    }

    #[test]
    fn an_input_is_judged_by_the_schema_and_told_in_a_bounded_sentence() {
        let pay = Pay(json!({
            "type": "object",
            "required": ["cents"],
            "properties": {"cents": {"type": "integer"}},
        }));
        assert_eq!(fits(&pay, &json!({"cents": 5})), Ok(()));
        let long = "x".repeat(5_000);
        for bad in [json!({}), json!([]), json!({"cents": long})] {
            let failure = fits(&pay, &bad).expect_err("does not fit");
            assert_eq!(failure.class, ToolErrorClass::InvalidInput);
            assert!(failure.told.chars().count() <= TOLD_CHARS_MAX);
        }
        let odd = Pay(json!({"type": 7}));
        let failure = fits(&odd, &json!({})).expect_err("no schema");
        assert_eq!(failure.class, ToolErrorClass::Internal);
    }
}
