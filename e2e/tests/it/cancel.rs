//! Cancels, in every phase and under load.

mod campaign;
mod load;
mod matrix;
mod phases;
mod turn;
