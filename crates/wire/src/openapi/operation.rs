//! What an operation is: a method and a path, what it takes, what it gives, how it can fail.

use serde_json::Value;

use super::parameter::Parameter;
use super::schemas::Shape;
use crate::problem::Code;

/// The methods that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is its own name")]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    /// As on the request line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Sessions,
    Turns,
    Chat,
    Record,
    Problems,
    Operations,
}

impl Tag {
    pub(super) const ALL: [Self; 6] = [
        Self::Sessions,
        Self::Turns,
        Self::Chat,
        Self::Record,
        Self::Problems,
        Self::Operations,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Turns => "turns",
            Self::Chat => "chat",
            Self::Record => "record",
            Self::Problems => "problems",
            Self::Operations => "operations",
        }
    }

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Sessions => "Conversations, and the way into their streams.",
            Self::Turns => "One input and everything done to answer it.",
            Self::Chat => "A turn whose answer is its own stream of server-sent events.",
            Self::Record => "What was said and done, read back.",
            Self::Problems => "What every error means.",
            Self::Operations => "For those who look after the server.",
        }
    }
}

/// One operation of the API.
pub(super) struct Operation {
    /// Its method.
    pub method: Method,
    /// Its path, with names in braces.
    pub path: &'static str,
    /// Its name in generated clients.
    pub id: &'static str,
    pub(super) tag: Tag,
    pub(super) summary: &'static str,
    pub(super) about: &'static str,
    /// For whom it speaks is said in headers.
    pub(super) owned: bool,
    pub(super) parameters: &'static [Parameter],
    pub(super) body: Option<Body>,
    pub(super) answers: &'static [Answer],
    pub(super) problems: &'static [Problem],
}

/// A body that clients send.
pub(super) struct Body {
    pub(super) shape: Shape,
    pub(super) required: bool,
    pub(super) examples: fn() -> Value,
}

/// A good answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) contents: &'static [(&'static str, Shape)],
    pub(super) headers: &'static [Header],
    pub(super) links: &'static [Link],
}

impl Answer {
    pub(super) const fn new(status: u16, about: &'static str) -> Self {
        Self {
            status,
            about,
            contents: &[],
            headers: &[],
            links: &[],
        }
    }
}

/// A header of an answer that is always there.
pub(super) struct Header {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: Shape,
}

/// What an answer can be used for: a value of it is a parameter of another operation.
pub(super) struct Link {
    pub(super) operation: &'static str,
    pub(super) parameter: &'static str,
    pub(super) value: &'static str,
}

/// A way to fail, beside those that everything of its kind has.
#[derive(Clone, Copy)]
pub(super) enum Problem {
    /// With the code's own status.
    Of(Code),
    /// With another.
    As(Code, u16),
}

impl Problem {
    pub(super) const fn code(self) -> Code {
        match self {
            Self::Of(code) | Self::As(code, _) => code,
        }
    }

    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Of(code) => code.status(),
            Self::As(_, status) => status,
        }
    }
}
