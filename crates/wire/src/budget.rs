//! Byte budgets of lists: how many items of a page fit, counted as the JSON that is sent.
//!
//! The store bounds what is read by the bytes that it stores. JSON may be larger, because a control
//! character takes six bytes, so the page is cut once more here, exactly. What is cut is on the next
//! page.

use std::io;

use serde::Serialize;
use turnwire_event::Message;

/// Bytes of a page beside its items: field names, the cursor, ids and sums.
const ENVELOPE_BYTES: usize = 1_024;

/// A writer that counts.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The size of a value as JSON.
pub fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut count = ByteCount(0);
    serde_json::to_writer(&mut count, value).expect("bodies are plain data");
    count.0
}

/// The number of items, in order, that fit into an answer of `bytes_max`; 1 if the first does not.
fn fitting<'a, T: Serialize + 'a>(items: impl Iterator<Item = &'a T>, bytes_max: usize) -> usize {
    let mut left = item_bytes_max(bytes_max);
    let fits = |item: &T| match left.checked_sub(json_bytes(item) + 1) {
        None => false,
        Some(rest) => {
            left = rest;
            true
        }
    };
    items.map(fits).take_while(|fits| *fits).count().max(1)
}

fn item_bytes_max(bytes_max: usize) -> usize {
    bytes_max.saturating_sub(ENVELOPE_BYTES)
}

/// Cuts `items` to those that fit into an answer of `bytes_max`, the first in any case; true if
/// items were cut.
pub fn cut_to_fit<T: Serialize>(items: &mut Vec<T>, bytes_max: usize) -> bool {
    let (all, fitting) = (items.len(), fitting(items.iter(), bytes_max));
    items.truncate(fitting);
    fitting < all
}

/// Cuts messages, oldest first, to the newest that fit into an answer of `bytes_max`; true if older
/// ones were cut. A newest message that exceeds the answer alone loses its content; see
/// [`Message::omitted_bytes`].
pub fn cut_to_newest(messages: &mut Vec<Message>, bytes_max: usize) -> bool {
    if let Some(newest) = messages.last_mut()
        && newest.omitted_bytes.is_none()
        && json_bytes(newest) >= item_bytes_max(bytes_max)
    {
        let bytes = json_bytes(&newest.content) + json_bytes(&newest.metadata);
        newest.omit_content(bytes as u64);
    }
    let fitting = fitting(messages.iter().rev(), bytes_max);
    let cut = messages.len().saturating_sub(fitting);
    messages.drain(..cut);
    cut > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnwire_event::{
        ContentBlock, MessageId, MessageStatus, ProviderState, Role, SessionId, Timestamp, TurnId,
        Ulid,
    };

    fn message(id: u128, text: &str) -> Message {
        Message {
            id: MessageId(Ulid(id)),
            session_id: SessionId(Ulid(1)),
            turn_id: TurnId(Ulid(1)),
            role: Role::User,
            status: MessageStatus::Complete,
            content: vec![ContentBlock::text(text)],
            omitted_bytes: None,
            model: None,
            stop_reason: None,
            usage: None,
            created_at: Timestamp::default(),
            metadata: turnwire_event::JsonObject::default(),
            provider_state: ProviderState::default(),
        }
    }

    #[test]
    fn page_is_cut_by_the_bytes_of_its_json() {
        // A control character is one byte in memory and six in JSON.
        let item = "\u{1}".repeat(1_000);
        for (bytes_max, expected) in [(7_100, 1), (13_100, 2), (19_100, 3)] {
            let mut items = vec![item.clone(); 3];
            assert_eq!(cut_to_fit(&mut items, bytes_max), expected < 3);
            assert_eq!(items.len(), expected, "{bytes_max}");
            assert!(json_bytes(&json!({ "items": items, "next": "x" })) <= bytes_max);
        }
        // What stands between small items counts too.
        let mut items = vec![7_u8; 10_000];
        assert!(cut_to_fit(&mut items, 5_000));
        let bytes = json_bytes(&json!({ "items": items, "next": "x" }));
        assert!((3_900..=5_000).contains(&bytes), "{bytes}");
        let mut items = vec![item; 3];
        assert!(
            cut_to_fit(&mut items, 1) && items.len() == 1,
            "a page has an item"
        );
        assert!(!cut_to_fit(&mut Vec::<String>::new(), 1));
    }

    #[test]
    fn newest_messages_fit_and_a_large_one_loses_its_content() {
        let ids = |messages: &[Message]| messages.iter().map(|m| m.id.0.0).collect::<Vec<_>>();
        let large = "\u{1}".repeat(1_000);
        let mut messages = vec![message(1, &large), message(2, "a"), message(3, "b")];
        assert!(cut_to_newest(&mut messages, 4_000));
        assert_eq!(ids(&messages), [2, 3]);
        assert!(
            !cut_to_newest(&mut messages, 4_000),
            "nothing is left to cut"
        );
        let mut messages = vec![message(1, "a"), message(2, &large)];
        assert!(!cut_to_newest(&mut messages, 4_000));
        assert_eq!(ids(&messages), [1, 2]);
        let bytes = r#"[{"type":"text","text":""}]{}"#.len() as u64 + 6_000;
        assert_eq!(messages[1].omitted_bytes, Some(bytes));
        assert!(messages[1].content.is_empty());
        assert!(json_bytes(&messages) <= 4_000);
    }
}
