//! What services and MCP servers send, read without a connection: entry points of the fuzz targets.

use serde_json::Value;

pub use crate::data_service::fuzzing::read_envelope;
use crate::mcp::{CallOutput, CallResult, ResultSender, ResultSlot, reduce_answer, usable_tools};
use crate::secrets::Secrets;

/// What became of a message that answers a request.
#[derive(Debug)]
pub struct AnswerReading {
    /// What is left for the protocol's own client.
    pub rest: Option<Vec<u8>>,
    /// What a model gets of the result of a call.
    pub output: Option<Value>,
    /// The usable tools, if the result is a list of tools.
    pub tools: Option<usize>,
}

/// Reads a message as the answer to a call and to a request for the list of tools. No text of
/// `secret` is left in the output.
pub fn read_answer(message: &[u8], secret: &str) -> AnswerReading {
    let call = ResultSlot::new(CallResult::read);
    let list = ResultSlot::new(usable_tools);
    let reader: ResultSender = call.clone();
    let rest = reduce_answer(message, &reader);
    let reader: ResultSender = list.clone();
    reduce_answer(message, &reader);
    let secrets = Secrets::of_env(&[("SERVER_KEY".to_owned(), secret.to_owned())]);
    let output = call.take().flatten();
    let output = output.map(|result| match CallOutput::new(result, &secrets) {
        CallOutput::Result(value) => value,
        CallOutput::Error(text) => Value::String(text),
        CallOutput::TooLarge => Value::Null,
    });
    AnswerReading {
        rest,
        output,
        tools: list.take().flatten(),
    }
}
