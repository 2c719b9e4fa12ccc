//! Where the server listens, and how it shuts down.

use std::net::SocketAddr;

use crate::config::setting::{number, section, socket_address};

section! {
    /// Where the server listens, and how it shuts down.
    Listen, "listen" {
        /// Address and port. Without authentication (`auth.mode: none`) only loopback addresses are
        /// allowed.
        address: SocketAddr = "127.0.0.1:8421", socket_address;
        /// How long running turns may continue after SIGTERM: most answers finish in 10 s, and
        /// supervisors usually wait 30 s before they kill.
        drain_ms: u64 = "10000", number(0..=600_000);
    }
}
