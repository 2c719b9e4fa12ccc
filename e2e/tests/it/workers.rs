//! Worker sessions.

mod cancel;
mod order;
mod stream;
