//! The files of `ops/`: proxies in front of a real server, the systemd unit, container and Helm files.

mod nginx;

mod headers;
mod manifests;
mod proxies;
mod streams;
mod unit;
