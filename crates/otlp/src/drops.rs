//! Why spans are lost. Every one of them is counted (S2-079).

use turnwire_event::metric;

/// Why spans were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The turn has more spans than are recorded of one, or more turns run than are recorded at once.
    Limit,
    /// The collector could not be reached, or did not take the batch in time.
    Unavailable,
    /// The collector refused the batch with a status that is not retried.
    Refused,
    /// The collector took the batch without these spans.
    Rejected,
    /// The server ended before they were sent.
    Shutdown,
}

impl DropReason {
    const ALL: [Self; 6] = [
        Self::QueueFull,
        Self::Limit,
        Self::Unavailable,
        Self::Refused,
        Self::Rejected,
        Self::Shutdown,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Limit => "limit",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Counts `spans` that were lost.
pub(crate) fn count_dropped(reason: DropReason, spans: u64) {
    metrics::counter!(metric::OTEL_DROPPED_TOTAL, "reason" => reason.label()).increment(spans);
}

/// Counts spans that the collector has.
pub(crate) fn count_exported(spans: u64) {
    metrics::counter!(metric::OTEL_EXPORTED_TOTAL).increment(spans);
}

/// Lets every reason begin at 0, so that the first loss is an increase.
pub(crate) fn register() {
    for reason in DropReason::ALL {
        count_dropped(reason, 0);
    }
}
