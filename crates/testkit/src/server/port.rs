//! Ports for servers that are killed and started again. They lie below those the system gives
//! to outgoing connections, so that nobody takes one while its server is down.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

const LOW: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A loopback address that nobody listens on, and that this process gives once.
pub fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes may run side by side: begin where another is not likely to be.
    let offset = (std::process::id() % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        // 7 and the count have no common divisor: neighbours in time are not neighbours here.
        let place = (u32::from(offset) + u32::from(step) * 7) % u32::from(COUNT);
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, LOW + place as u16));
        if TcpListener::bind(addr).is_ok() {
            return addr;
        }
    }
    panic!("no free port between {LOW} and {}", LOW + COUNT)
}
