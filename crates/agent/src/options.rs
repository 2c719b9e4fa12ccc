//! The settings of an agent: its model, its limits, and the retries of its model calls.

use std::time::Duration;

use turnwire_event::port::HistoryBudget;

/// How a model call that failed before its first output is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOptions {
    /// The most attempts of one call with one model, the first included. A failure that outlasts
    /// three attempts seldom ends within seconds.
    pub attempts: u32,
    /// The upper bound of the random delay before the second attempt; doubles with each further
    /// attempt.
    pub base_delay: Duration,
    /// The bound at which the doubling stops. A delay that the provider asks for may be longer.
    pub max_delay: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts: 3,
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(8),
        }
    }
}

/// The settings of one agent, an orchestrator or a sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentOptions {
    /// The name of the model, `provider:model`.
    pub model: String,
    /// The system prompt, sent before the history.
    pub system: Option<String>,
    /// The limits of the history that is sent to the model.
    pub history: HistoryBudget,
    /// The most model calls of the orchestrator in one turn, and of a sub-agent in one invocation.
    /// Real work seldom takes ten; a model that still calls tools after 32 is in a loop and costs
    /// money.
    pub calls_max: u32,
    /// The most tools that one message may call; further calls are declined. Models rarely call more
    /// than a handful.
    pub tool_calls_max: usize,
    /// The most tokens, input and output, of all model calls of a turn, sub-agents included:
    /// several times the context window of the largest model.
    pub turn_tokens_max: u64,
    /// The most USD that all model calls of a turn may cost; `None` for no limit.
    pub turn_cost_max_usd: Option<f64>,
    /// The [`RetryOptions`] of a model whose provider sets none.
    pub retries: RetryOptions,
    /// The timeout of a tool that sets none.
    pub tool_timeout: Duration,
    /// The most characters of the summary of a tool's input or result in an event.
    pub summary_chars_max: usize,
    /// The most bytes of one tool result as JSON: as many as the default history limit.
    pub result_bytes_max: usize,
    /// The most bytes of one message. JSON escapes make text at most six times as long, so that a
    /// message of 2 MiB still fits the largest frame of 16 MiB.
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
