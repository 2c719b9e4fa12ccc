//! A model message independent of a provider: parts, finish reason and token counts. The file of
//! each dialect renders it in that provider's format.

use serde_json::Value;

/// One part of a [`ModelMessage`].
#[derive(Clone, Debug, PartialEq)]
pub enum MessagePart {
    Thinking {
        /// The text, one delta per piece.
        pieces: Vec<String>,
        /// The signature, one delta per piece; empty for none. Responses sends it whole as
        /// `encrypted_content`, Gemini as `thoughtSignature` of the last thought (base64 there).
        signature: Vec<String>,
    },
    /// Encrypted reasoning. Chat Completions cannot send it.
    Redacted { data: String },
    Text {
        /// The text, one delta per piece.
        pieces: Vec<String>,
    },
    /// A tool call request.
    Call {
        /// The call id; `None` uses a generated id, and no id in Gemini.
        id: Option<String>,
        name: String,
        /// The input as JSON text, one delta per piece. Gemini sends it whole.
        pieces: Vec<String>,
        /// Gemini's `thoughtSignature` of this call (base64); other formats cannot send it.
        signature: Option<String>,
    },
}

impl MessagePart {
    /// Visible reasoning with its signature in one piece.
    pub fn thinking<P: Into<String>>(
        pieces: impl IntoIterator<Item = P>,
        signature: impl Into<String>,
    ) -> Self {
        Self::Thinking {
            pieces: strings(pieces),
            signature: vec![signature.into()],
        }
    }

    /// Text with one delta per piece.
    pub fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::Text {
            pieces: strings(pieces),
        }
    }

    /// At least `bytes` bytes of text in pieces of 4 KiB.
    pub fn flood(bytes: usize) -> Self {
        const PIECE: usize = 4096;
        let piece = "All work and no play. ".repeat(PIECE / 22 + 1)[..PIECE].to_owned();
        Self::Text {
            pieces: vec![piece; bytes.div_ceil(PIECE)],
        }
    }

    /// A tool call with an id; the input is split into a few pieces.
    pub fn call(id: &str, name: &str, input: &Value) -> Self {
        let text: Vec<char> = input.to_string().chars().collect();
        let size = text.len().div_ceil(4).max(1);
        Self::call_in(Some(id), name, text.chunks(size).map(String::from_iter))
    }

    /// A tool call with the input in these pieces, valid JSON or not.
    pub fn call_in<P: Into<String>>(
        id: Option<&str>,
        name: &str,
        pieces: impl IntoIterator<Item = P>,
    ) -> Self {
        Self::Call {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            pieces: strings(pieces),
            signature: None,
        }
    }

    /// Adds a signature to a call or a reasoning part.
    #[must_use]
    pub fn signed(mut self, new_signature: &str) -> Self {
        match &mut self {
            Self::Call { signature, .. } => *signature = Some(new_signature.to_owned()),
            Self::Thinking { signature, .. } => *signature = vec![new_signature.to_owned()],
            Self::Redacted { .. } | Self::Text { .. } => {
                panic!("only a call and a reasoning part have a signature")
            }
        }
        self
    }
}

fn strings<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Vec<String> {
    pieces.into_iter().map(Into::into).collect()
}

/// Why the model stopped generating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    Done,
    /// The model calls tools. Gemini and Responses have no value of their own for it.
    Tools,
    /// The output token limit was reached.
    Length,
    /// This stop sequence was generated.
    Sequence(String),
    Refused,
    /// A long turn was paused (Anthropic's `pause_turn`; elsewhere like `Done`).
    Paused,
    /// The context window is full (an Anthropic value; elsewhere like `Length`).
    Window,
    /// This raw value, for unknown reasons.
    Word(String),
}

/// The token usage of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCounts {
    /// All input tokens, including cache reads and writes.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cached: u64,
    /// Input tokens written to the cache. Gemini does not report them.
    pub cache_write: u64,
    /// All output tokens, including reasoning.
    pub output: u64,
    /// Output tokens of the reasoning.
    pub reasoning: u64,
}

impl Default for TokenCounts {
    fn default() -> Self {
        Self {
            input: 12,
            cached: 0,
            cache_write: 0,
            output: 7,
            reasoning: 0,
        }
    }
}

/// The order of the frames of different blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockOrder {
    /// One block after the other.
    #[default]
    InTurn,
    /// All blocks start, then one delta of each in turn. In Chat Completions this affects only calls;
    /// in Gemini all calls come in one frame.
    Interleaved,
    /// The last block first, with the original indices. Gemini has no indices.
    Backwards,
}

/// The whole output of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelMessage {
    /// The answer's id; `None` generates one in the provider's form.
    pub id: Option<String>,
    /// The model's name; `None` uses the requested model.
    pub model: Option<String>,
    pub parts: Vec<MessagePart>,
    pub finish: FinishReason,
    pub usage: TokenCounts,
    /// The order of the frames of different blocks.
    pub order: BlockOrder,
    /// The delta field for reasoning in Chat Completions. OpenAI sends none; compatible servers
    /// use `reasoning_content` or `reasoning`.
    pub chat_reasoning: Option<&'static str>,
}

impl ModelMessage {
    /// A message of these parts; its finish reason is `Tools` if there is a call, else `Done`.
    pub fn new(parts: impl IntoIterator<Item = MessagePart>) -> Self {
        let parts: Vec<MessagePart> = parts.into_iter().collect();
        let calls = parts
            .iter()
            .any(|part| matches!(part, MessagePart::Call { .. }));
        Self {
            id: None,
            model: None,
            finish: if calls {
                FinishReason::Tools
            } else {
                FinishReason::Done
            },
            parts,
            usage: TokenCounts::default(),
            order: BlockOrder::InTurn,
            chat_reasoning: None,
        }
    }

    /// Text with one delta per piece.
    pub fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::new([MessagePart::text(pieces)])
    }

    /// Sets the id of the answer.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Sets the name of the model.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Sets the reason of the end.
    #[must_use]
    pub fn finish(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Sets the token counts reported.
    #[must_use]
    pub fn usage(mut self, usage: TokenCounts) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the order of the frames.
    #[must_use]
    pub fn order(mut self, order: BlockOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the delta field for reasoning in Chat Completions.
    #[must_use]
    pub fn chat_reasoning(mut self, field: &'static str) -> Self {
        self.chat_reasoning = Some(field);
        self
    }
}
