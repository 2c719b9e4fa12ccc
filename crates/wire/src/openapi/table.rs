//! All operations, one file a topic.

mod session;
mod turn;
mod approval;
mod chat;
mod record;
mod service;

use serde_json::{Value, json};

use super::operation::{Answer, Operation};
use super::schemas::{Schemas, Shape};

/// Every operation of the API, in the order of the document.
pub(super) fn operations() -> impl Iterator<Item = &'static Operation> {
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

/// 200 with a JSON body.
const fn ok(about: &'static str, contents: &'static [(&'static str, Shape)]) -> Answer {
    let mut answer = Answer::new(200, about);
    answer.contents = contents;
    answer
}

/// Text of any kind.
fn text(_: &mut Schemas) -> Value {
    json!({ "type": "string" })
}
