//! What a fake model says, in no provider's words: parts, why it stopped, what it cost. Each
//! dialect's file turns it into that provider's bytes.

use serde_json::Value;

/// One part of what the model says.
#[derive(Clone, Debug, PartialEq)]
pub enum MessagePart {
    /// Reasoning that is shown.
    Thinking {
        /// Its text, one delta a piece.
        pieces: Vec<String>,
        /// What proves it, one delta a piece; empty if there is none. Responses sends it whole as
        /// `encrypted_content`, Gemini as `thoughtSignature` of the last thought (base64 there).
        signature: Vec<String>,
    },
    /// Reasoning that is only given sealed. Chat Completions cannot carry it.
    Redacted { data: String },
    Text {
        /// One delta a piece.
        pieces: Vec<String>,
    },
    /// A wish to call a tool.
    Call {
        /// Its id. Without one, providers that give ids make one, and Gemini sends none.
        id: Option<String>,
        name: String,
        /// Its input as JSON text, one delta a piece. Gemini sends it whole.
        pieces: Vec<String>,
        /// Gemini's `thoughtSignature` of this call (base64); the others cannot carry it.
        signature: Option<String>,
    },
}

impl MessagePart {
    /// Reasoning with its proof in one piece.
    pub fn thinking<P: Into<String>>(
        pieces: impl IntoIterator<Item = P>,
        signature: impl Into<String>,
    ) -> Self {
        Self::Thinking {
            pieces: strings(pieces),
            signature: vec![signature.into()],
        }
    }

    /// Text in pieces.
    pub fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::Text {
            pieces: strings(pieces),
        }
    }

    /// At least `bytes` of text in pieces of 4 KiB, for floods.
    pub fn flood(bytes: usize) -> Self {
        const PIECE: usize = 4096;
        let piece = "All work and no play. ".repeat(PIECE / 22 + 1)[..PIECE].to_owned();
        Self::Text {
            pieces: vec![piece; bytes.div_ceil(PIECE)],
        }
    }

    /// A call of a tool with its id, its input cut into a few pieces.
    pub fn call(id: &str, name: &str, input: &Value) -> Self {
        let text: Vec<char> = input.to_string().chars().collect();
        let size = text.len().div_ceil(4).max(1);
        Self::call_in(Some(id), name, text.chunks(size).map(String::from_iter))
    }

    /// A call of a tool without an id of the script's, its input in these pieces, JSON or not.
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

    /// The same call with Gemini's proof of the reasoning before it.
    #[must_use]
    pub fn signed(mut self, proof: &str) -> Self {
        match &mut self {
            Self::Call { signature, .. } => *signature = Some(proof.to_owned()),
            Self::Thinking { signature, .. } => *signature = vec![proof.to_owned()],
            Self::Redacted { .. } | Self::Text { .. } => {
                panic!("only a call and a thought carry a proof")
            }
        }
        self
    }
}

fn strings<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Vec<String> {
    pieces.into_iter().map(Into::into).collect()
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    Done,
    /// It wants tools called. Gemini and Responses have no word of their own for it.
    Tools,
    /// The limit of output tokens.
    Length,
    /// A stop sequence, this one.
    Sequence(String),
    Refused,
    /// A long turn was paused (Anthropic's `pause_turn`; elsewhere like `Done`).
    Paused,
    /// The context window is full (Anthropic's own word; elsewhere like `Length`).
    Window,
    /// This word as it is, for words that nobody knows.
    Word(String),
}

/// What the answer cost, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCounts {
    /// All of the request, with what was read from and written to the cache.
    pub input: u64,
    /// Of the input: read from the cache.
    pub cached: u64,
    /// Of the input: written to the cache. Gemini does not say it.
    pub cache_write: u64,
    /// All of the answer, with the reasoning.
    pub output: u64,
    /// Of the output: reasoning.
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

/// In which order the blocks' frames come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockOrder {
    /// One block after the other.
    #[default]
    InTurn,
    /// All are opened, then a delta of each in turn. In Chat Completions this concerns the calls;
    /// in Gemini all calls come in one frame.
    Interleaved,
    /// The last block first, with the indices they would have had. Gemini has no indices.
    Backwards,
}

/// All that the model says in one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelMessage {
    /// The answer's id; without one it is made in the provider's form.
    pub id: Option<String>,
    /// The model that answers; without one it is the one asked for.
    pub model: Option<String>,
    pub parts: Vec<MessagePart>,
    pub finish: FinishReason,
    pub usage: TokenCounts,
    /// The order of the blocks' frames.
    pub order: BlockOrder,
    /// The delta field in which Chat Completions shows reasoning. OpenAI shows none; servers that
    /// are compatible with it use `reasoning_content` or `reasoning`.
    pub chat_reasoning: Option<&'static str>,
}

impl ModelMessage {
    /// These parts; the finish follows from whether there is a call.
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

    /// Text in pieces.
    pub fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::new([MessagePart::text(pieces)])
    }

    /// The same with this id.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// The same from this model.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// The same with this end.
    #[must_use]
    pub fn finish(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// The same at this cost.
    #[must_use]
    pub fn usage(mut self, usage: TokenCounts) -> Self {
        self.usage = usage;
        self
    }

    /// The same in this order.
    #[must_use]
    pub fn order(mut self, order: BlockOrder) -> Self {
        self.order = order;
        self
    }

    /// The same with reasoning shown by Chat Completions in this delta field.
    #[must_use]
    pub fn chat_reasoning(mut self, field: &'static str) -> Self {
        self.chat_reasoning = Some(field);
        self
    }
}
