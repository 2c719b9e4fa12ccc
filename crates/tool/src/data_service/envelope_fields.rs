//! Fields of an envelope that go to the trace of its call, and nowhere else (S2-043).

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use turnwire_event::port::SpanValue;

/// The attributes of a span, while they are collected.
type SharedAttributes = Arc<Mutex<Vec<(&'static str, SpanValue)>>>;

/// Collects fields of an envelope for the span of its call, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnvelopeFields(Option<SharedAttributes>);

impl EnvelopeFields {
    /// Fields for a span.
    pub(crate) fn wanted() -> Self {
        Self(Some(Arc::default()))
    }

    /// Takes what was collected.
    pub(crate) fn take(&self) -> Vec<(&'static str, SpanValue)> {
        let fields = self.0.as_ref();
        fields
            .map(|fields| std::mem::take(&mut *fields.lock()))
            .unwrap_or_default()
    }

    /// True if a span takes the fields.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps one field, in the form of its JSON.
    pub(crate) fn put(&self, name: &'static str, value: &Value) {
        let Some(fields) = &self.0 else { return };
        let value = match value {
            Value::Bool(value) => SpanValue::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => SpanValue::Int(whole),
                None => SpanValue::Float(number.as_f64().unwrap_or_default()),
            },
            // The contract has no other types, and free text does not belong into a trace.
            _ => return,
        };
        fields.lock().push((name, value));
    }
}
