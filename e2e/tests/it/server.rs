//! The process: start, crash, disk, limits, pages.

mod browser;
mod budgets;
mod disk;
mod drain;
mod durability;
mod flood;
mod folder;
mod kills;
mod life;
mod pages;
mod schemathesis;
mod tenant;
mod tools_http;
mod websocket_cases;
