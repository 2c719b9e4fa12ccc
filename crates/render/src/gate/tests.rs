//! A gate under test, by what it is asked for.

mod cost;
mod gathered;
mod law;
mod shown;
mod words;
