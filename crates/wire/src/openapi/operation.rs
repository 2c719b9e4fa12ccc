//! An operation of the API: method, path, request, responses and failures. [`get`], [`post`] and
//! [`delete`] start one, and its methods add the rest.

use schemars::JsonSchema;
use serde_json::{Value, json};
use turnwire_event::SessionId;

use super::parameter::OperationParameter;
use super::schemas::{SchemaFn, request_schema, response_schema};
use crate::problem::Code;
use crate::rest::turn::TurnName;

const JSON: &str = "application/json";

/// One operation of the API.
pub(super) struct OperationSpec {
    /// The method in lower case.
    pub(super) method: &'static str,
    /// The path with parameter names in braces.
    pub(super) path: &'static str,
    /// The `operationId`, the name of the operation in generated clients.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: &'static str,
    pub(super) identity: RequestIdentity,
    /// The scopes of which a token needs one; none for an operation without a token.
    pub(super) scopes: &'static [&'static str],
    /// True if an attach token in the URL opens it.
    pub(super) takes_attach_token: bool,
    pub(super) parameters: Vec<OperationParameter>,
    pub(super) body: Option<RequestBody>,
    pub(super) responses: Vec<SuccessResponse>,
    /// The codes that the operation can fail with, besides those of all operations of its kind,
    /// with the status of the response.
    pub(super) failures: Vec<(u16, Code)>,
}

/// How an operation uses the headers with tenant and principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestIdentity {
    /// The operation acts for the owner.
    Owner,
    /// The answer is the same for every owner. The request counts for its owner, so invalid headers
    /// are refused.
    Counted,
    /// A probe of the operator, which is answered whatever the headers are.
    Probe,
}

/// The body of a request.
pub(super) struct RequestBody {
    pub(super) shape: SchemaFn,
    pub(super) is_required: bool,
    pub(super) examples: Value,
}

/// Starts a `GET` operation with its path, `operationId` and summary.
pub(super) fn get(path: &'static str, id: &'static str, summary: &'static str) -> OperationSpec {
    OperationSpec {
        method: "get",
        path,
        id,
        summary,
        about: "",
        identity: RequestIdentity::Owner,
        scopes: &["own"],
        takes_attach_token: false,
        parameters: Vec::new(),
        body: None,
        responses: Vec::new(),
        failures: Vec::new(),
    }
}

/// Starts a `POST` operation.
pub(super) fn post(path: &'static str, id: &'static str, summary: &'static str) -> OperationSpec {
    let method = "post";
    OperationSpec {
        method,
        ..get(path, id, summary)
    }
}

/// Starts a `DELETE` operation.
pub(super) fn delete(path: &'static str, id: &'static str, summary: &'static str) -> OperationSpec {
    let method = "delete";
    OperationSpec {
        method,
        ..get(path, id, summary)
    }
}

impl OperationSpec {
    /// Adds the `description` that the document shows below the summary.
    pub(super) fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    pub(super) fn identity(mut self, identity: RequestIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the scopes of which a token needs one.
    pub(super) fn scopes(mut self, scopes: &'static [&'static str]) -> Self {
        self.scopes = scopes;
        self
    }

    /// An attach token in the URL opens it.
    pub(super) fn attach_token(mut self) -> Self {
        self.takes_attach_token = true;
        self
    }

    pub(super) fn parameter(mut self, parameter: OperationParameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Adds the id of a session in the path.
    pub(super) fn session(self) -> Self {
        let shape = request_schema::<SessionId>;
        self.parameter(OperationParameter::path("id", "The session.", shape))
    }

    /// Adds the id of a turn in the path.
    pub(super) fn turn(self) -> Self {
        let (about, shape) = (
            "The turn, by its turn id or its response id.",
            request_schema::<TurnName>,
        );
        self.parameter(OperationParameter::path("id", about, shape))
    }

    pub(super) fn query(self, name: &'static str, about: &'static str, shape: SchemaFn) -> Self {
        self.parameter(OperationParameter::query(name, about, shape))
    }

    /// Adds the parameters of a list whose items have ids of the type `T`, and their failure.
    pub(super) fn page<T: JsonSchema>(self, limit: SchemaFn) -> Self {
        let before = "Only items before this one: `next` of the previous page.";
        self.query("limit", "The page size.", limit)
            .query("before", before, request_schema::<T>)
            .fails(&[Code::InvalidCursor])
    }

    /// Adds the parameter that continues a list in the order of its items, and its failure.
    pub(super) fn after<T: JsonSchema>(self) -> Self {
        let after = "Only items after this one: `next` of the previous page.";
        self.query("after", after, request_schema::<T>)
            .fails(&[Code::InvalidCursor])
    }

    /// Adds a body that every request must have.
    pub(super) fn body<T: JsonSchema>(mut self, examples: Value) -> Self {
        self.body = Some(RequestBody {
            shape: request_schema::<T>,
            is_required: true,
            examples,
        });
        self
    }

    /// Adds a body that a request may omit.
    pub(super) fn optional_body<T: JsonSchema>(self, examples: Value) -> Self {
        let mut operation = self.body::<T>(examples);
        operation
            .body
            .iter_mut()
            .for_each(|body| body.is_required = false);
        operation
    }

    pub(super) fn response(mut self, response: SuccessResponse) -> Self {
        self.responses.push(response);
        self
    }

    /// Adds a response with a JSON body.
    pub(super) fn json<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.response(SuccessResponse::json::<T>(status, about))
    }

    /// Adds codes that the operation can fail with.
    pub(super) fn fails(mut self, codes: &[Code]) -> Self {
        let failures = codes.iter().map(|&code| (code.status(), code));
        self.failures.extend(failures);
        self
    }
}

/// A successful response with its status.
pub(super) struct SuccessResponse {
    pub(super) status: u16,
    pub(super) about: &'static str,
    /// Media types with their schemas.
    pub(super) contents: Vec<(&'static str, SchemaFn)>,
    pub(super) headers: Vec<ResponseHeader>,
    pub(super) links: Vec<ResponseLink>,
}

/// A header that the response always has.
pub(super) struct ResponseHeader {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: SchemaFn,
}

/// A link: a value of the response is the parameter `id` of another operation.
pub(super) struct ResponseLink {
    pub(super) operation: &'static str,
    pub(super) value: &'static str,
}

impl SuccessResponse {
    pub(super) fn new(status: u16, about: &'static str) -> Self {
        Self {
            status,
            about,
            contents: Vec::new(),
            headers: Vec::new(),
            links: Vec::new(),
        }
    }

    pub(super) fn json<T: JsonSchema>(status: u16, about: &'static str) -> Self {
        Self::new(status, about).content(JSON, response_schema::<T>)
    }

    pub(super) fn content(mut self, media_type: &'static str, shape: SchemaFn) -> Self {
        self.contents.push((media_type, shape));
        self
    }

    pub(super) fn header(
        mut self,
        name: &'static str,
        about: &'static str,
        shape: SchemaFn,
    ) -> Self {
        self.headers.push(ResponseHeader { name, about, shape });
        self
    }

    /// Adds the path of the created resource.
    pub(super) fn location(self, about: &'static str) -> Self {
        self.header("Location", about, |_| json!({ "type": "string" }))
    }

    /// Adds links to `operations`, whose `id` is `value` of the response.
    pub(super) fn links(mut self, value: &'static str, operations: &[&'static str]) -> Self {
        let links = operations.iter();
        self.links
            .extend(links.map(|&operation| ResponseLink { operation, value }));
        self
    }
}
