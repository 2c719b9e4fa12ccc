//! The four wire formats of the fake provider, selected by the request path.

/// A provider's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic Messages: `POST /v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions: `POST /v1/chat/completions`.
    Chat,
    /// OpenAI Responses: `POST /v1/responses`.
    Responses,
    /// Google Gemini: `POST /v1/models/{model}:streamGenerateContent?alt=sse`, and `/v1beta`.
    Gemini,
}

impl Dialect {
    /// All four, for tests that hold for each.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    /// The format that a path asks for.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            path => gemini_model(path).map(|_| Self::Gemini),
        }
    }

    /// How this provider ends its lines: Google with CR LF, the others with LF.
    pub(crate) fn line_end(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Chat | Self::Responses => "\n",
            Self::Gemini => "\r\n",
        }
    }
}

/// The model that a Gemini path names.
pub(crate) fn gemini_model(path: &str) -> Option<&str> {
    let segments = path.strip_prefix('/')?;
    let (version, segments) = segments.split_once('/')?;
    let model = segments
        .strip_prefix("models/")?
        .strip_suffix(":streamGenerateContent")?;
    (["v1", "v1beta", "v1alpha"].contains(&version) && !model.is_empty()).then_some(model)
}
