//! The bodies of requests: what was read is what would be written.

use std::fmt::Debug;

use serde_json::Value;
use turnwire_wire::rest::approval::ApprovalAnswers;
use turnwire_wire::rest::chat::ChatRequest;
use turnwire_wire::rest::content::MessageInput;
use turnwire_wire::rest::feedback::FeedbackRequest;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::{SessionCancel, TurnCancel, TurnSubmit};

/// A body as every type of request.
pub(crate) fn run(input: &[u8]) {
    // A message that is none is kept with its mistake, which is not written.
    read(input, |submit: &TurnSubmit| is_content(&submit.message));
    read(input, |chat: &ChatRequest| is_content(&chat.message));
    read(input, |_: &ApprovalAnswers| true);
    read(input, |_: &FeedbackRequest| true);
    read(input, |_: &SessionCreate| true);
    read(input, |_: &SessionCancel| true);
    read(input, |_: &TurnCancel| true);
}

/// True if a message has content; then each of its blocks is one.
fn is_content(message: &MessageInput) -> bool {
    let blocks = message.clone().content();
    if let Ok(blocks) = &blocks {
        assert_eq!(blocks.len(), message.block_count());
    }
    blocks.is_ok()
}

fn read<T>(input: &[u8], can_be_written: impl Fn(&T) -> bool)
where
    T: serde::de::DeserializeOwned + serde::Serialize + Debug + PartialEq,
{
    let Ok(body) = serde_json::from_slice::<T>(input) else {
        return;
    };
    if !can_be_written(&body) {
        return;
    }
    let written: Value = serde_json::to_value(&body).expect("a body can be written");
    let again: T = serde_json::from_value(written).expect("what is written can be read");
    assert_eq!(again, body);
}
