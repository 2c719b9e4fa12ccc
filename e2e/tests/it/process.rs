//! Tools that are programs, and their guards.

mod early_stop;
mod escape;
mod fight;
mod folder;
mod guard;
mod keys;
mod odd;
mod server;
mod share;
mod talk;
mod tool;
