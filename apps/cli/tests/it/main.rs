//! Tests of the command `turnwire` as a process, in one binary.

mod server;
mod upstream;
mod gate;
mod person;

mod chat;
mod check;
mod contract;
mod data_folder;
mod doctor;
mod export;
mod live;
mod manual;
mod readme;
mod replay;
mod rerun;
mod tls;
mod usage;
