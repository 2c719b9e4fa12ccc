//! What an agent is told when it is made: its model, and how much of anything it may take.

use std::time::Duration;

use turnwire_event::port::HistoryBudget;

/// How often a model is asked that fails before it says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Tries of one model for one call, the first among them. What has not passed after three is
    /// seldom a matter of seconds.
    pub attempts: u32,
    /// The longest wait before the second try; it doubles with each one more.
    pub base: Duration,
    /// The longest wait of all.
    pub max: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(500),
            max: Duration::from_secs(8),
        }
    }
}

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
    /// Tools that one message may ask for; the rest is not executed. Models ask for a handful.
    pub tool_calls_max: usize,
    /// Tokens, read and written, of all model calls of a turn, those of sub-agents among them:
    /// several times what the largest model can be shown at once.
    pub turn_tokens_max: u64,
    /// USD of all model calls of a turn; without it there is no such bound.
    pub turn_cost_max_usd: Option<f64>,
    /// How often a model is asked that fails before it says anything.
    pub retries: Retries,
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
            tool_calls_max: 32,
            turn_tokens_max: 1_000_000,
            turn_cost_max_usd: None,
            retries: Retries::default(),
            tool_timeout: Duration::from_secs(60),
            summary_chars_max: 256,
            result_bytes_max: 1 << 20,
            message_bytes_max: 2 << 20,
        }
    }
}
