//! What tests of stops share: a house whose model is asked over a socket and whose tools are of
//! every kind, cells of the matrix, and the judgement of one stopped turn (F14, S3-070 to S3-083).
//!
//! ```text
//! kind of tool × fan-out ─▶ Cell ─▶ runs until all of it is at work ─▶ stop ─▶ judged, table empty
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
