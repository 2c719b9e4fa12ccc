//! What tests of stops share: a house whose model is asked over a socket and whose tools are of
//! every kind, cells of the matrix, and the judgement of one stopped turn (F14, S3-070 to S3-083).
//!
//! ```text
//! kind of tool × fan-out ─▶ Cell ─▶ runs until all of it is at work ─▶ stop ─▶ judged, table empty
//! ```

mod house;
mod kind;
mod told;
mod cell;
pub mod campaign;

pub use cell::{Cell, Way, after, watch};
pub use house::House;
pub use kind::{Fan, Kind};
pub use told::{Expected, stopped};
