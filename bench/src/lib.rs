//! Measures Turnwire beside a reference in the same run, and writes the table.
//!
//! One program plays every part: it coordinates, and starts itself again as the floor server, as
//! a Turnwire server with a paced producer, as a data service, as a provider of models, as the load
//! client or as a writer of rows, each in a process of its own so that it can have a core of its
//! own. Read top-down, the modules go from what is counted to who counts it.

pub mod machine;
pub mod stat;
pub mod stamp;
pub mod frame;
pub mod sse;
pub mod sample;
pub mod window;
pub mod http;
pub mod floor;
pub mod producer;
pub mod paced;
pub mod service;
pub mod provider;
pub mod proxy;
pub mod collector;
pub mod histogram;
pub mod policy;
pub mod token_check;
pub mod adapter;
pub mod append;
pub mod load;
pub mod role;
pub mod process;
pub mod peer;
pub mod report;
pub mod part;
