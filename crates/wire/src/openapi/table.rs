//! All operations of the API, one file per topic.

mod session;
mod turn;
mod approval;
mod chat;
mod record;
mod service;

use serde_json::{Value, json};

use super::operation::{OperationSpec, SuccessResponse};
use super::schemas::{DocumentSchemas, SchemaFn};

/// Every operation of the API, in the order of the document.
pub(super) fn operations() -> impl Iterator<Item = &'static OperationSpec> {
    [
        session::OPERATIONS,
        turn::OPERATIONS,
        approval::OPERATIONS,
        chat::OPERATIONS,
        record::OPERATIONS,
        service::OPERATIONS,
    ]
    .into_iter()
    .flatten()
}

const JSON: &str = "application/json";

/// A 200 response with a body.
const fn ok(about: &'static str, contents: &'static [(&'static str, SchemaFn)]) -> SuccessResponse {
    let mut response = SuccessResponse::new(200, about);
    response.contents = contents;
    response
}

/// The schema of plain text.
fn text(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string" })
}
