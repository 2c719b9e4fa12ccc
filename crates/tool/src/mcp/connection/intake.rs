//! What rmcp gets of each message. rmcp builds values of a whole message before anything of it is
//! checked, and those take up to a hundred times its text, so results never reach it:
//!
//! ```text
//! message ──▶ MessageIntake ── {"id": 7, "result": {}} ──▶ rmcp ──▶ the request is answered
//!                  ╰── the text of the result ──▶ ResultSlot of request 7
//! ```
//! Messages without a slot (handshakes, pings, notifications) are small.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::value::RawValue;
use turnwire_event::metric;

/// Bytes of a message whose result no [`ResultSlot`] takes: instructions and icons of a server fit.
pub(super) const PLAIN_BYTES_MAX: usize = 256 << 10;
/// Bytes of the id of a request.
const ID_BYTES_MAX: usize = 1_024;
/// Characters of an error message of a server; a model gets fewer.
const ERROR_CHARS_MAX: usize = 16_384;
/// Slots of requests that are over are removed when there are this many.
const SLOTS_CLEANUP_AT: usize = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Takes the text of a result.
pub(crate) trait ResultReader: Send + Sync {
    fn read(&self, result: &str);
}

/// Where the result of a request goes. The request has it in its extensions.
pub(crate) type ResultSender = Arc<dyn ResultReader>;

/// Reads the result of one request, within the limits of its kind.
pub(crate) struct ResultSlot<T> {
    read: fn(&str) -> T,
    result: Mutex<Option<T>>,
}

impl<T> ResultSlot<T> {
    pub(crate) fn new(read: fn(&str) -> T) -> Arc<Self> {
        Arc::new(Self {
            read,
            result: Mutex::new(None),
        })
    }

    /// The result; `None` if there is none.
    pub(crate) fn take(&self) -> Option<T> {
        self.result.lock().take()
    }
}

impl<T: Send> ResultReader for ResultSlot<T> {
    fn read(&self, result: &str) {
        let result = (self.read)(result);
        *self.result.lock() = Some(result);
    }
}

/// The parts of a message, as text.
#[derive(Deserialize)]
struct MessageShape<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorShape {
    code: i32,
    message: String,
}

/// The results that one connection waits for.
pub(super) struct MessageIntake {
    server: Arc<str>,
    slots: Mutex<HashMap<RequestId, Weak<dyn ResultReader>>>,
}

impl MessageIntake {
    pub(super) fn new(server: &Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            server: Arc::clone(server),
            slots: Mutex::default(),
        })
    }

    /// Gives the result of the request `id` to `reader`.
    pub(super) fn expect(&self, id: &RequestId, reader: &ResultSender) {
        let mut slots = self.slots.lock();
        if slots.len() >= SLOTS_CLEANUP_AT {
            slots.retain(|_, reader| reader.strong_count() > 0);
        }
        slots.insert(id.clone(), Arc::downgrade(reader));
    }

    fn reader(&self, id: &RawValue) -> Option<ResultSender> {
        let id = serde_json::from_str(id.get()).ok()?;
        self.slots.lock().remove(&id)?.upgrade()
    }

    /// What rmcp gets of `message`; `None` for nothing.
    pub(super) fn reduce<'a>(&self, message: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
        let is_plain = message.len() <= PLAIN_BYTES_MAX;
        let plain = || is_plain.then_some(Cow::Borrowed(message));
        let Ok(shape) = serde_json::from_slice::<MessageShape<'_>>(message) else {
            return plain();
        };
        let id = shape.id.filter(|id| id.get().len() <= ID_BYTES_MAX);
        match (id, shape.result, shape.error) {
            (Some(id), Some(result), None) => match self.reader(id) {
                Some(reader) => {
                    reader.read(result.get());
                    Some(response(id, "result", "{}"))
                }
                None if is_plain => plain(),
                None => {
                    let message = format!("its answer has more than {PLAIN_BYTES_MAX} bytes");
                    let error = serde_json::json!({"code": -32603, "message": message});
                    Some(response(id, "error", &error.to_string()))
                }
            },
            (Some(id), None, Some(error)) if !is_plain => {
                let ErrorShape { code, message } = serde_json::from_str(error.get()).ok()?;
                let message: String = message.chars().take(ERROR_CHARS_MAX).collect();
                let error = serde_json::json!({"code": code, "message": message});
                Some(response(id, "error", &error.to_string()))
            }
            _ if is_plain => plain(),
            _ => {
                let server = self.server.to_string();
                metrics::counter!(metric::MCP_NOTIFICATIONS_DROPPED_TOTAL, "server" => server)
                    .increment(1);
                None
            }
        }
    }
}

/// What rmcp gets of `message` while request 1 waits for its result in `reader`.
#[cfg(feature = "fuzzing")]
pub(crate) fn reduce_answer(message: &[u8], reader: &ResultSender) -> Option<Vec<u8>> {
    let intake = MessageIntake::new(&"server".into());
    intake.expect(&RequestId::Number(1), reader);
    intake.reduce(message).map(Cow::into_owned)
}

fn response(id: &RawValue, field: &str, value: &str) -> Cow<'static, [u8]> {
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"{field}":{value}}}"#);
    Cow::Owned(message.into_bytes())
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerJsonRpcMessage;

    use super::*;

    fn reduced(intake: &MessageIntake, message: &str) -> Option<String> {
        let reduced = intake.reduce(message.as_bytes())?;
        Some(String::from_utf8(reduced.into_owned()).expect("text"))
    }

    fn large(start: &str, end: &str) -> String {
        format!(
            "{start}[{}0]{end}",
            r#"{"":0},"#.repeat(PLAIN_BYTES_MAX / 7)
        )
    }

    #[test]
    fn result_goes_to_its_slot_and_not_to_rmcp() {
        let intake = MessageIntake::new(&"small".into());
        let slot = ResultSlot::new(str::len);
        let sender: ResultSender = slot.clone();
        intake.expect(&RequestId::Number(7), &sender);
        let result = large("{\"a\":", "}");
        let message = format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{result}}}\r");
        let reduced_message = reduced(&intake, &message).expect("a message");
        assert_eq!(reduced_message, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        let parsed: ServerJsonRpcMessage = serde_json::from_str(&reduced_message).expect("valid");
        assert!(matches!(parsed, ServerJsonRpcMessage::Response(_)));
        assert_eq!(slot.take(), Some(result.len()));
        // The request is over.
        reduced(&intake, &message);
        assert_eq!(slot.take(), None);
        let other = message.replace("\"id\":7", "\"id\":8");
        let other = reduced(&intake, &other).expect("a message");
        assert!(other.contains("more than 262144 bytes"), "{other}");
    }

    #[test]
    fn large_messages_without_a_slot_are_refused() {
        let intake = MessageIntake::new(&"small".into());
        let ping = r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#;
        assert_eq!(reduced(&intake, ping).as_deref(), Some(ping));
        assert_eq!(reduced(&intake, "words").as_deref(), Some("words"));
        for dropped in [
            large(r#"{"method":"notifications/message","params":"#, "}"),
            large(r#"{"id":"#, r#","result":{}}"#),
            large(r#"{"id":"#, r#","method":"ping"}"#),
            large(r#"{"id":1,"result":{},"error":"#, "}"),
            large("", ""),
            "x".repeat(PLAIN_BYTES_MAX + 1),
        ] {
            assert_eq!(reduced(&intake, &dropped), None, "{}", &dropped[..40]);
        }
        let error = large(r#"{"id":3,"error":{"code":5,"message":"no","data":"#, "}}");
        let error = reduced(&intake, &error).expect("a message");
        assert!(
            error.ends_with(r#""error":{"code":5,"message":"no"}}"#),
            "{error}"
        );
    }

    #[test]
    fn slots_of_finished_requests_are_removed() {
        let intake = MessageIntake::new(&"small".into());
        for id in 0..1_000 {
            let sender: ResultSender = ResultSlot::new(str::len);
            intake.expect(&RequestId::Number(id), &sender);
        }
        assert!(intake.slots.lock().len() <= SLOTS_CLEANUP_AT);
    }
}
