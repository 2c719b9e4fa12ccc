//! Work on the database beside the commits: checkpoints of the WAL, removal in pieces, erasing
//! what it leaves, rewriting a file without free pages.

pub(crate) mod checkpoint;
pub(crate) mod clock_mark;
pub(crate) mod removal;
pub(crate) mod maintain;
pub(crate) mod erase;
pub(crate) mod compact;
pub(crate) mod backup;
