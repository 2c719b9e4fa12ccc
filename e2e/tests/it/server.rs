//! The process: start, crash, disk, limits, pages.

mod backup;
mod browser;
mod budgets;
mod damage;
mod disk;
mod drain;
mod durability;
mod event_bytes;
mod flood;
mod folder;
mod kills;
mod life;
mod limits;
mod pages;
mod reload;
mod promtool;
mod dashboard;
mod request_memory;
mod scans;
mod schemathesis;
mod tenant;
mod tools_http;
mod transfers;
mod websocket_cases;
mod writes;
