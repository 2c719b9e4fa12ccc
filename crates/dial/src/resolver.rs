//! Names to addresses, with the guard in between: it is asked for every new connection, so a
//! name that points elsewhere later is judged anew, and nobody can connect past it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::address::{Reach, reach};
use crate::allow::{Allow, name};

/// Lookups at once. Each holds a thread for as long as the machine's resolver takes, longer than
/// whoever asked may still want to know.
const LOOKUPS_MAX: usize = 32;

/// The guard said no.
#[derive(Debug, thiserror::Error)]
#[error("the name has an address that is not allowed")]
pub(crate) struct NotAllowed;

/// What the machine says that a name stands for.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// The addresses of `host`. May block.
    fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
pub(crate) struct System;

impl Lookup for System {
    fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        use std::net::ToSocketAddrs as _;
        let found = (host, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Resolves names and lets only those through that may be spoken to.
pub(crate) struct Guarded {
    lookup: Arc<dyn Lookup>,
    allow: Arc<[Allow]>,
    slots: Arc<Semaphore>,
}

impl Guarded {
    pub(crate) fn new(lookup: Arc<dyn Lookup>, allow: Arc<[Allow]>) -> Self {
        Self {
            lookup,
            allow,
            slots: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }
}

impl Resolve for Guarded {
    fn resolve(&self, asked: Name) -> Resolving {
        let lookup = Arc::clone(&self.lookup);
        let allow = Arc::clone(&self.allow);
        let slots = Arc::clone(&self.slots);
        Box::pin(async move {
            let slot = slots.acquire_owned().await?;
            let found = tokio::task::spawn_blocking(move || {
                // Given back when the lookup ends, not when nobody waits for it any more.
                let _slot = slot;
                let host = asked.as_str();
                let found = lookup.lookup(host)?;
                let fits = found
                    .iter()
                    .all(|&address| permitted(host, address, &allow));
                Ok::<_, std::io::Error>(fits.then_some(found))
            });
            let found = found.await??.ok_or(NotAllowed)?;
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

/// Whether a host of that name may be at that address. One bad address of several is enough to
/// refuse: nobody can say which one the connection would take.
pub(crate) fn permitted(host: &str, address: IpAddr, allow: &[Allow]) -> bool {
    match reach(address) {
        Reach::Never => false,
        Reach::Public => true,
        Reach::Loopback if name(host) == "localhost" => true,
        Reach::Loopback | Reach::Private => allow
            .iter()
            .any(|entry| entry.names(host) || entry.holds(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g5_a_name_is_let_through_only_where_someone_allowed_it() {
        let cases: [(&str, &str, &[&str], bool); 15] = [
            ("example.com", "93.184.216.34", &[], true),
            ("example.com", "127.0.0.1", &[], false),
            ("example.com", "10.0.0.1", &[], false),
            ("example.com", "::1", &[], false),
            ("example.com", "::ffff:10.0.0.1", &[], false),
            ("example.com", "0.0.0.0", &[], false),
            ("localhost", "127.0.0.1", &[], true),
            ("LOCALHOST.", "::1", &[], true),
            ("localhost", "10.0.0.1", &[], false),
            ("ccs.internal", "10.0.0.1", &["ccs.internal"], true),
            ("evil.internal", "10.0.0.1", &["ccs.internal"], false),
            ("ccs.internal", "10.0.0.1", &["10.0.0.0/8"], true),
            ("ccs.internal", "192.168.0.1", &["10.0.0.0/8"], false),
            (
                "ccs.internal",
                "169.254.169.254",
                &["ccs.internal", "0.0.0.0/0"],
                false,
            ),
            ("ccs.internal", "fe80::1", &["ccs.internal", "::/0"], false),
        ];
        for (host, address, allow, expected) in cases {
            let allow: Vec<Allow> = allow.iter().map(|a| a.parse().expect("an entry")).collect();
            let address = address.parse().expect("an address");
            assert_eq!(
                permitted(host, address, &allow),
                expected,
                "{host} {address}"
            );
        }
    }
}
