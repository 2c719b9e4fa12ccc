//! Tests of the command `turnwire` as a process, in one binary.

mod server;
mod upstream;
mod gate;
mod person;

mod chat;
mod contract;
mod data_folder;
mod live;
mod manual;
mod replay;
mod rerun;
mod usage;
