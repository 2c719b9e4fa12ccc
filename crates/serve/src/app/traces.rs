//! The export of traces, as the `OTEL_*` variables ask for it.

use std::sync::Arc;

use turnwire_event::Clock;
use turnwire_otlp::{Exporter, TraceSettings, Tracer};

/// The tracer and its exporter; `None` if this server exports no traces. What is wrong with the variables
/// is in the log.
pub(super) fn start(clock: Arc<dyn Clock>) -> Option<(Arc<Tracer>, Exporter)> {
    let settings = TraceSettings::read(&|name| std::env::var(name).ok());
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let started = Tracer::start(settings.options?, clock);
    started
        .inspect(|_| tracing::info!("traces are exported over OTLP"))
        .inspect_err(|error| tracing::error!(%error, "no traces are exported"))
        .ok()
}
