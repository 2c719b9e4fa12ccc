//! What is measured: quotas, and metrics of turns and of their model calls, recorded when the reporting
//! event has its position.

pub(crate) mod quota;
pub(crate) mod model_calls;
pub(crate) mod turn_metrics;
