//! What an agent is told when it is made: its model, and how much of anything it may take.

use std::time::Duration;

use turnwire_event::port::HistoryBudget;

/// An agent's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The model, `provider:model`.
    pub model: String,
    /// The standing instruction.
    pub system: Option<String>,
    /// How much of the session's past the model is shown.
    pub history: HistoryBudget,
    /// Model calls of one turn. Real work seldom takes ten; a model that still asks for tools
    /// after 32 goes in circles and costs money.
    pub calls_max: u32,
    /// How long a tool may take that does not say so itself.
    pub tool_timeout: Duration,
    /// Characters of inputs and results that events show.
    pub summary_chars_max: usize,
    /// Bytes of one result's JSON: as much as the whole history may have.
    pub result_bytes_max: usize,
    /// Bytes of one message: escaped six-fold, the worst JSON can do to it, it still fits the
    /// largest frame of 16 MiB.
    pub message_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: "scripted:default".to_owned(),
            system: None,
            history: HistoryBudget {
                messages_max: 200,
                bytes_max: 1 << 20,
            },
            calls_max: 32,
            tool_timeout: Duration::from_secs(60),
            summary_chars_max: 256,
            result_bytes_max: 1 << 20,
            message_bytes_max: 2 << 20,
        }
    }
}
