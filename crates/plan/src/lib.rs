//! One plan step.
