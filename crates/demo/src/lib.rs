//! The data service of the demo pack: a small fixed catalogue behind the same HTTP contract as any
//! other data service.
//!
//! The binary hands [`start`] to the server as the value of the variable [`VARIABLE`]. The service
//! starts when a pack first names that variable and nothing else sets it. It imports no other crate of
//! the workspace: packs reach it by URL alone.

mod language;
mod query;
mod offers;
mod customer;
mod support;
mod service;

use std::io;

use tokio::net::TcpListener;
use tokio::runtime::Handle;

pub use service::serve;

/// The variable by which packs name the address of the service.
pub const VARIABLE: &str = "DEMO_CCS";

/// Starts the service on `runtime`, on a free loopback port, and returns its URL. The service runs
/// until `POST /stop` or the end of the runtime.
pub fn start(runtime: &Handle) -> io::Result<String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let url = format!("http://{}", listener.local_addr()?);
    // `from_std` registers the socket with the runtime that is entered.
    let _entered = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    runtime.spawn(serve(listener, std::future::pending()));
    tracing::info!(%url, "demo data service started; POST {url}/stop stops it");
    Ok(url)
}
