//! An operation of the API: method, path, request, responses and failures.

use serde_json::Value;

use super::parameter::OperationParameter;
use super::schemas::SchemaFn;
use crate::problem::Code;

/// The HTTP methods of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is its own name")]
pub(super) enum OperationMethod {
    Get,
    Post,
    Delete,
}

impl OperationMethod {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// The group of an operation in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationTag {
    Sessions,
    Turns,
    Chat,
    Record,
    Problems,
    Operations,
}

impl OperationTag {
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
            Self::Sessions => "Conversations and access to their streams.",
            Self::Turns => "One user input and everything done to answer it.",
            Self::Chat => "A turn whose response is its own stream of server-sent events.",
            Self::Record => "Stored messages, events and calls.",
            Self::Problems => "The meaning of every error.",
            Self::Operations => "Monitoring and operation of the server.",
        }
    }
}

/// One operation of the API.
pub(super) struct OperationSpec {
    pub method: OperationMethod,
    /// The path with parameter names in braces.
    pub path: &'static str,
    /// The `operationId`, the name of the operation in generated clients.
    pub id: &'static str,
    pub(super) tag: OperationTag,
    pub(super) summary: &'static str,
    pub(super) about: &'static str,
    /// True if the headers of the request name its tenant and principal.
    pub(super) owned: bool,
    pub(super) parameters: &'static [OperationParameter],
    pub(super) body: Option<RequestBody>,
    pub(super) responses: &'static [SuccessResponse],
    pub(super) problems: &'static [FailureCode],
}

/// The body of a request.
pub(super) struct RequestBody {
    pub(super) shape: SchemaFn,
    pub(super) required: bool,
    pub(super) examples: fn() -> Value,
}

/// A successful response with its status.
pub(super) struct SuccessResponse {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) contents: &'static [(&'static str, SchemaFn)],
    pub(super) headers: &'static [ResponseHeader],
    pub(super) links: &'static [ResponseLink],
}

impl SuccessResponse {
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

/// A header that the response always has.
pub(super) struct ResponseHeader {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: SchemaFn,
}

/// A link: a value of the response is a parameter of another operation.
pub(super) struct ResponseLink {
    pub(super) operation: &'static str,
    pub(super) parameter: &'static str,
    pub(super) value: &'static str,
}

/// A code that the operation can fail with, besides those of all operations of its kind.
#[derive(Clone, Copy)]
pub(super) enum FailureCode {
    /// With the status of the code.
    Default(Code),
    /// With a status other than that of the code.
    WithStatus(Code, u16),
}

impl FailureCode {
    pub(super) const fn code(self) -> Code {
        match self {
            Self::Default(code) | Self::WithStatus(code, _) => code,
        }
    }

    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Default(code) => code.status(),
            Self::WithStatus(_, status) => status,
        }
    }
}
