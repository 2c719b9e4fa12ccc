//! The database of the real process: retention, removal, the clock, the write-ahead log.

mod big_database;
mod clock;
mod erase;
mod removal;
mod retention;
mod wal;
