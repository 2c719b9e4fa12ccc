//! A subscriber that records the names of spans.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The names of the created spans, in order.
#[derive(Clone, Default)]
pub(super) struct SpanNames(Arc<Mutex<Vec<&'static str>>>);

impl SpanNames {
    pub(super) fn taken(&self) -> Vec<&'static str> {
        self.0.lock().clone()
    }
}

impl Subscriber for SpanNames {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("turnwire_agent")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut names = self.0.lock();
        names.push(span.metadata().name());
        Id::from_u64(names.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
