//! Running servers: correct ones and faulty ones, over pipes and over HTTP.

mod stage;
mod good;
mod bad;
mod life;
mod over_http;
