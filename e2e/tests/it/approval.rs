//! Tools that need an approval.

mod input;
mod kills;
mod turns;
