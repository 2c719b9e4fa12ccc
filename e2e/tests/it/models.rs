//! Model providers: formats, faults, routing, cost.

mod budget;
mod carry;
mod cassette;
mod cost;
mod faults;
mod formats;
mod real;
mod refusals;
mod routing;
mod same;
mod secrets;
mod silence;
