//! The interceptor: what stands between every emitter and the log and says how an event is shown.
//!
//! In: an event on its way. Out: the same event, and what the rendering policy makes of it. An
//! event may be stamped here, never swallowed. The policy that is here is the one without
//! policies: `PassThrough` stamps nothing.

mod pass;

pub use pass::PassThrough;
