//! Running servers: correct ones and faulty ones, over pipes and over HTTP.

mod support;
mod calls;
mod faults;
mod restarts;
mod over_http;
