//! The pieces of a model's streamed answer, in one vocabulary for every vendor.
//!
//! Content blocks are numbered from 0 in the order in which the model opens them. A block keeps its
//! kind. Tool input arrives as raw JSON fragments that need not parse before [`Delta::ToolEnd`].
//! [`Delta::Stop`] is the last delta: a stream that ends without it was cut off.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, TokenUsage};

use crate::provider_fault::ProviderFault;

/// One piece of a streamed answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// The provider started to answer. Sent at most once, before all other deltas.
    Started {
        /// The provider's id of the response.
        response_id: String,
    },
    /// Opaque data that the provider expects back with this block when the message is sent to it
    /// again. The last one of a block counts. A block with nothing else, such as redacted
    /// reasoning, is an empty block.
    ProviderData {
        /// The block that the data belongs to.
        block: u32,
        /// Defined by the provider's dialect; nobody else reads it.
        data: Value,
    },
    /// Text appended to a text block.
    Text {
        /// Number of the content block, from 0.
        block: u32,
        /// Only the new text.
        text: String,
    },
    /// Reasoning appended to a thinking block.
    Thinking {
        /// Number of the content block, from 0.
        block: u32,
        /// Only the new reasoning text.
        text: String,
        /// The provider's signature of the reasoning, or a piece of it; pieces append.
        signature: Option<String>,
    },
    /// A tool use block starts.
    ToolStart {
        /// Number of the content block, from 0.
        block: u32,
        /// Name of the tool that the model wants to call.
        name: String,
        /// The provider's id of this tool use, if it assigns one.
        provider_id: Option<String>,
    },
    /// A fragment of the tool's input JSON.
    ToolInput {
        /// Number of the content block, from 0.
        block: u32,
        /// Raw JSON text; fragments append.
        fragment: String,
    },
    /// The input of the tool use is complete.
    ToolEnd {
        /// Number of the content block, from 0.
        block: u32,
    },
    /// Token usage of the call so far, as far as its provider reported it; the last one counts. For
    /// a call that fails or is stopped: a complete answer reports its usage in [`Delta::Stop`].
    PartialUsage {
        /// Tokens and cost of the call.
        usage: TokenUsage,
    },
    /// The answer is complete. Always the last delta.
    Stop {
        /// The reason, translated from the vendor's own.
        reason: StopReason,
        /// Tokens and cost of the call.
        usage: TokenUsage,
    },
}

impl Delta {
    /// Sets the number of the block that the delta belongs to, if it belongs to one.
    #[must_use]
    pub(crate) fn with_block(mut self, number: u32) -> Self {
        match &mut self {
            Self::Text { block, .. }
            | Self::Thinking { block, .. }
            | Self::ToolStart { block, .. }
            | Self::ToolInput { block, .. }
            | Self::ToolEnd { block }
            | Self::ProviderData { block, .. } => *block = number,
            Self::Started { .. } | Self::PartialUsage { .. } | Self::Stop { .. } => {}
        }
        self
    }

    /// Size of the delta's content in bytes.
    pub fn content_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Thinking {
                text, signature, ..
            } => text.len() + length(signature),
            Self::ToolStart {
                name, provider_id, ..
            } => name.len() + length(provider_id),
            Self::ToolInput { fragment, .. } => fragment.len(),
            Self::ProviderData { data, .. } => data.to_string().len(),
            Self::Started { .. }
            | Self::ToolEnd { .. }
            | Self::PartialUsage { .. }
            | Self::Stop { .. } => 0,
        }
    }
}

/// Whether a failed call may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryHint {
    /// Do not retry: the request itself was rejected.
    Never,
    /// Retry after the caller's own backoff.
    Backoff,
    /// Retry, but not before this time has passed; the provider asked for it.
    After(Duration),
}

/// A failed model call. Clients see only its class; the location and the [`ProviderFault`] are for the
/// people who run the server.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the model call failed: {class:?}")]
pub struct ModelError {
    /// Kind of failure, as reported in events.
    pub class: LlmErrorClass,
    /// Whether the caller may retry the call.
    pub retry: RetryHint,
    /// Step that failed, one word for the server's log such as `connect` or `idle`; empty until
    /// [`ModelError::with_location`] sets it.
    pub location: &'static str,
    /// Where the call went and what the provider said; `None` if no provider was called.
    pub fault: Option<Arc<ProviderFault>>,
}

/// Two errors are equal if callers treat them the same way: location and fault are not compared.
impl PartialEq for ModelError {
    fn eq(&self, other: &Self) -> bool {
        (self.class, self.retry) == (other.class, other.retry)
    }
}

impl Eq for ModelError {}

impl ModelError {
    /// An error with an empty location.
    pub const fn new(class: LlmErrorClass, retry: RetryHint) -> Self {
        Self {
            class,
            retry,
            location: "",
            fault: None,
        }
    }

    /// A transient failure, to be retried with backoff.
    pub const fn transient(class: LlmErrorClass) -> Self {
        Self::new(class, RetryHint::Backoff)
    }

    /// The provider's stream violates its protocol.
    pub(crate) fn malformed() -> Self {
        Self::new(LlmErrorClass::Provider, RetryHint::Never).with_location("malformed")
    }

    /// The response body ended before the answer was complete. A retry after some output would
    /// repeat that output.
    pub(crate) const fn cut_off(has_output: bool) -> Self {
        let retry = match has_output {
            true => RetryHint::Never,
            false => RetryHint::Backoff,
        };
        Self::new(LlmErrorClass::Transport, retry)
    }

    /// Replaces the caller's own backoff by the delay that the provider asks for.
    pub(crate) fn with_retry_after(mut self, delay: Option<Duration>) -> Self {
        if let (RetryHint::Backoff, Some(delay)) = (self.retry, delay) {
            self.retry = RetryHint::After(delay);
        }
        self
    }

    /// Sets the location, unless one is set already: the innermost caller knows it best.
    #[must_use]
    pub fn with_location(mut self, location: &'static str) -> Self {
        if self.location.is_empty() {
            self.location = location;
        }
        self
    }
}

impl From<LlmErrorClass> for ModelError {
    /// A permanent failure: retrying does not help.
    fn from(class: LlmErrorClass) -> Self {
        Self::new(class, RetryHint::Never)
    }
}
