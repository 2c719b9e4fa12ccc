//! Pure folds over events: the state of a message, the open work of a turn, the row changes.
//!
//! The live server, crash recovery and the tests use the same functions, so they cannot
//! disagree about what an ended turn looks like.

pub mod cut;
pub mod input;
pub mod message;
pub mod checkpoint;
pub mod replay;
pub mod rows;
pub mod dispatch;
pub mod open_work;
pub mod turn;
pub mod close;

pub use close::{CloseCause, ClosingEvent, StopSummary, StoppedTask, closing};
pub use cut::{CutList, DeltaCut};
pub use message::MessageFold;
pub use open_work::OpenWork;
pub use rows::rows;
pub use turn::OpenTurn;
