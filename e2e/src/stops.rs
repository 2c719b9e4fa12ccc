//! Fixture and cases of the stop tests: a server with a fake provider and tools of every kind, the
//! cells of the stop matrix, and the checks of one stopped turn (F14, S3-070 to S3-083).
//!
//! ```text
//! ToolKind × FanOut ─▶ StopCase ─▶ all tools run ─▶ stop ─▶ events checked, no process left
//! ```

mod fixture;
mod kind;
mod expected;
mod cell;
pub mod campaign;

pub use cell::{StopCase, StopMethod, after, watch};
pub use expected::{ExpectedEnd, stopped};
pub use fixture::StopFixture;
pub use kind::{FanOut, ToolKind};
