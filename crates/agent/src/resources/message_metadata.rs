//! Metadata of stored messages: which sub-agent and invocation a message belongs to, and whether it is
//! the result of a call that was not executed.

use serde_json::{Map, Value};
use turnwire_event::{InvocationId, Message};

const SUB_AGENT_ID: &str = "sub_agent_id";
const INVOCATION_ID: &str = "invocation_id";
const NOT_EXECUTED: &str = "not_executed";

/// The metadata of a message that belongs to the sub-agent `id`.
pub(crate) fn of_sub_agent(id: &str) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert(SUB_AGENT_ID.to_owned(), Value::String(id.to_owned()));
    metadata
}

/// The metadata of a message of one invocation: two invocations of one sub-agent may run at once, and
/// their messages must be told apart later.
pub(crate) fn of_invocation(id: &str, invocation: InvocationId) -> Map<String, Value> {
    let mut metadata = of_sub_agent(id);
    let invocation = Value::String(invocation.to_string());
    metadata.insert(INVOCATION_ID.to_owned(), invocation);
    metadata
}

/// The id of the invocation that `message` belongs to.
pub(crate) fn invocation_id(message: &Message) -> Option<&str> {
    message.metadata.get(INVOCATION_ID)?.as_str()
}

/// The entry that marks the result of a call that was not executed.
pub(crate) fn not_executed() -> (String, Value) {
    (NOT_EXECUTED.to_owned(), Value::Bool(true))
}

/// True if `message` is the result of a call that was not executed.
pub(crate) fn is_not_executed(message: &Message) -> bool {
    message.metadata.get(NOT_EXECUTED) == Some(&Value::Bool(true))
}
