//! Metadata of stored messages: which sub-agent and invocation a message belongs to, and whether it is
//! the result of a call that was not executed.

use serde_json::Value;
use turnwire_event::{InvocationId, JsonObject, Message};

const SUB_AGENT_ID: &str = "sub_agent_id";
const INVOCATION_ID: &str = "invocation_id";
const NOT_EXECUTED: &str = "not_executed";

/// The metadata of a message that belongs to the sub-agent `id`.
pub(crate) fn of_sub_agent(id: &str) -> JsonObject {
    let mut metadata = JsonObject::default();
    metadata.set(SUB_AGENT_ID, &Value::from(id));
    metadata
}

/// The metadata of a message of one invocation: two invocations of one sub-agent may run at once, and
/// their messages must be told apart later.
pub(crate) fn of_invocation(id: &str, invocation: InvocationId) -> JsonObject {
    let mut metadata = of_sub_agent(id);
    metadata.set(INVOCATION_ID, &Value::from(invocation.to_string()));
    metadata
}

/// The id of the invocation that `message` belongs to.
pub(crate) fn invocation_id(message: &Message) -> Option<String> {
    message.metadata.get_str(INVOCATION_ID)
}

/// Marks the result of a call that was not executed.
pub(crate) fn mark_not_executed(metadata: &mut JsonObject) {
    metadata.set(NOT_EXECUTED, &Value::Bool(true));
}

/// True if `message` is the result of a call that was not executed.
pub(crate) fn is_not_executed(message: &Message) -> bool {
    message.metadata.get(NOT_EXECUTED) == Some(Value::Bool(true))
}
