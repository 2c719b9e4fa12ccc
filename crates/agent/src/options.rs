//! The settings of an agent: its model and the bounds of its work.

use std::time::Duration;

use turnwire_event::port::HistoryBudget;

/// Retries of a model call that failed before its first output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOptions {
    /// Attempts of one model for one call, the first included. A failure that lasts longer than
    /// three attempts is seldom a matter of seconds.
    pub attempts: u32,
    /// The longest delay before the second attempt; it doubles with each further attempt.
    pub base: Duration,
    /// The longest delay before any attempt.
    pub max: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(500),
            max: Duration::from_secs(8),
        }
    }
}

/// The settings of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentOptions {
    /// The name of the model, `provider:model`.
    pub model: String,
    pub system: Option<String>,
    /// How much of the session's history the model is sent.
    pub history: HistoryBudget,
    /// The most model calls of one turn. Real work seldom takes ten; a model that still calls tools
    /// after 32 is in a loop and costs money.
    pub calls_max: u32,
    /// The most tools that one message may call; further calls are declined. Models call a handful.
    pub tool_calls_max: usize,
    /// The most tokens, input and output, of all model calls of a turn, sub-agents included:
    /// several times the context window of the largest model.
    pub turn_tokens_max: u64,
    /// The most USD that all model calls of a turn may cost; `None` for no bound.
    pub turn_cost_max_usd: Option<f64>,
    /// [`RetryOptions`] of a model that has none of its own.
    pub retries: RetryOptions,
    /// The timeout of a tool that has none of its own.
    pub tool_timeout: Duration,
    /// The most characters of a tool's input or result in an event.
    pub summary_chars_max: usize,
    /// The most bytes of one tool result as JSON: as much as the whole history may have.
    pub result_bytes_max: usize,
    /// The most bytes of one message: escaped six-fold, the worst that JSON can do, a message still
    /// fits the largest frame of 16 MiB.
    pub message_bytes_max: usize,
}

impl Default for AgentOptions {
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
            retries: RetryOptions::default(),
            tool_timeout: Duration::from_secs(60),
            summary_chars_max: 256,
            result_bytes_max: 1 << 20,
            message_bytes_max: 2 << 20,
        }
    }
}
