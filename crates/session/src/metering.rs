//! Metrics of turns and of their model calls, counted when the event that reports them has its
//! position.

pub(crate) mod turn_metrics;
pub(crate) mod model_calls;
