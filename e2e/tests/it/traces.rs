//! What operators see of turns: traces at a collector, metrics with their dimensions, lines of the log.

mod spans;
mod propagation;
mod sampling;
mod losses;
mod dimensions;
mod log_lines;
