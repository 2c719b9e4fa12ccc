//! Ports for servers that are killed and started again. They lie below those that the system gives
//! to outgoing connections, so that none is taken while its server is down. Tests run side by side in
//! processes of their own: a port belongs to the process that holds the lock on its file.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
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
    // Begin where another process is not likely to be.
    let offset = (std::process::id() % u32::from(COUNT)) as u16;
    let candidates = (0..COUNT).map(|step| LOW + (offset + step) % COUNT);
    let (addr, lock) = claim(&folder(), candidates)
        .unwrap_or_else(|| panic!("no free port between {LOW} and {}", LOW + COUNT));
    CLAIMED.lock().expect("no panic holds it").push(lock);
    addr
}

/// The first of the candidates that nobody has claimed in this folder and nobody listens on, with
/// the lock that keeps it.
fn claim(folder: &Path, candidates: impl Iterator<Item = u16>) -> Option<(SocketAddr, File)> {
    std::fs::create_dir_all(folder).expect("a folder for locks");
    for port in candidates {
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
            return Some((addr, lock));
        }
    }
    None
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
    fn claimed_port_is_skipped_until_its_lock_is_gone() {
        // A folder of its own: no other test claims a port in it.
        let folder = tempfile::tempdir().expect("a folder");
        // These are this process's, so that no server of another test listens on them.
        let ports: Vec<u16> = (0..3).map(|_| free().port()).collect();
        let next = || claim(folder.path(), ports.iter().copied());

        let (first, lock) = next().expect("a port");
        let (second, _lock_of_second) = next().expect("a port");
        assert_eq!([first.port(), second.port()], ports[..2]);
        drop(lock);
        assert_eq!(next().expect("a port").0, first);
    }

    #[test]
    fn port_with_a_listener_is_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let taken = listener.local_addr().expect("its address").port();
        let other = free().port();

        let (addr, _lock) = claim(folder.path(), [taken, other].into_iter()).expect("a port");
        assert_eq!(addr.port(), other);
        assert!(claim(folder.path(), [taken].into_iter()).is_none());
    }
}
