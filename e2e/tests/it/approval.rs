//! Tools that need an approval.

mod kills;
mod turns;
