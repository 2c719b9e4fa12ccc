//! Servers that run: good ones and bad ones, over pipes and over HTTP.

mod stage;
mod good;
mod bad;
mod life;
mod over_http;
