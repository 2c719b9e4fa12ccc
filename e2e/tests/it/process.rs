//! Tools that are programs, and their guards.

mod escape;
mod fight;
mod guard;
mod odd;
mod server;
mod talk;
mod tool;
