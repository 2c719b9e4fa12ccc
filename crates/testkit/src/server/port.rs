//! Ports for servers that are killed and started again. They lie below those that the system gives
//! to outgoing connections, so that none is taken while its server is down. Tests run side by side in
//! processes of their own: a port belongs to the process that holds the lock on its file.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Mutex;

const LOW: u16 = 20_000;
const COUNT: u16 = 12_000;

/// The locks of this process's ports. The system lets them go when the process ends.
static CLAIMED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Where the locks are: one folder for each user, who may not write another's files.
fn folder() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("turnwire-test-ports-{user}"))
}

/// A loopback address without a listener, which no other test gets while this process runs.
pub fn free() -> SocketAddr {
    let folder = folder();
    std::fs::create_dir_all(&folder).expect("a folder for locks");
    // Begin where another process is not likely to be.
    let offset = (std::process::id() % u32::from(COUNT)) as u16;
    for step in 0..COUNT {
        let port = LOW + (offset + step) % COUNT;
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(folder.join(port.to_string()))
            .expect("a file to lock");
        // A lock is of its file handle: a port that this process holds is refused here too.
        if lock.try_lock().is_err() {
            continue;
        }
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(addr).is_ok() {
            CLAIMED.lock().expect("no panic holds it").push(lock);
            return addr;
        }
    }
    panic!("no free port between {LOW} and {}", LOW + COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_distinct() {
        let mut ports: Vec<u16> = (0..50).map(|_| free().port()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn port_in_use_is_skipped() {
        // The next candidates belong to somebody else.
        let last = free().port();
        let next: Vec<u16> = (last + 1..last + 4).collect();
        let locks: Vec<File> = next
            .iter()
            .map(|port| File::create(folder().join(port.to_string())).expect("a file"))
            .collect();
        let free_locks = locks.iter().filter(|lock| lock.try_lock().is_ok()).count();
        let ports: Vec<u16> = (0..5).map(|_| free().port()).collect();
        assert!(free_locks > 0, "none of them was free");
        assert!(ports.iter().all(|port| !next.contains(port)), "{ports:?}");
    }
}
