//! The guarded DNS resolver. The HTTP client calls it for every new connection, so a name that
//! changes its address is checked again, and no connection bypasses the check.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::address::{AddressClass, classify};
use crate::allow::{AllowRule, normalize_host};

/// The limit of concurrent lookups. Each blocks a thread until the system resolver returns, even if
/// the request has timed out in the meantime.
const LOOKUPS_MAX: usize = 32;

/// A host name resolved to an address that is not allowed.
#[derive(Debug, thiserror::Error)]
#[error("the name has an address that is not allowed")]
pub(crate) struct AddressNotAllowed;

/// Resolves host names. The system resolver in production, fixed answers in tests.
pub(crate) trait HostLookup: Send + Sync + 'static {
    /// The addresses of `host`. May block the thread.
    fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The [`HostLookup`] of the operating system.
pub(crate) struct SystemResolver;

impl HostLookup for SystemResolver {
    fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        use std::net::ToSocketAddrs as _;
        let addresses = (host, 0).to_socket_addrs()?;
        Ok(addresses.map(|address| address.ip()).collect())
    }
}

/// Resolves names and rejects a name that has an address which is not allowed.
pub(crate) struct GuardedResolver {
    lookup: Arc<dyn HostLookup>,
    allow: Arc<[AllowRule]>,
    permits: Arc<Semaphore>,
}

impl GuardedResolver {
    pub(crate) fn new(lookup: Arc<dyn HostLookup>, allow: Arc<[AllowRule]>) -> Self {
        Self {
            lookup,
            allow,
            permits: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = Arc::clone(&self.lookup);
        let allow = Arc::clone(&self.allow);
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            let permit = permits.acquire_owned().await?;
            let addresses = tokio::task::spawn_blocking(move || {
                // Released when the lookup ends, not when the request stops waiting for it.
                let _permit = permit;
                let host = name.as_str();
                let addresses = lookup.lookup(host)?;
                let all_permitted = addresses
                    .iter()
                    .all(|&address| is_permitted(host, address, &allow));
                Ok::<_, std::io::Error>(all_permitted.then_some(addresses))
            });
            let addresses = addresses.await??.ok_or(AddressNotAllowed)?;
            let addresses = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// Whether requests to `host` may go to `address`. The caller rejects a host if one of its addresses
/// is not permitted, because any of them may be used for the connection.
pub(crate) fn is_permitted(host: &str, address: IpAddr, allow: &[AllowRule]) -> bool {
    match classify(address) {
        AddressClass::Forbidden => false,
        AddressClass::Public => true,
        AddressClass::Loopback if normalize_host(host) == "localhost" => true,
        AddressClass::Loopback | AddressClass::Private => allow
            .iter()
            .any(|entry| entry.matches_host(host) || entry.contains(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // G5
    #[test]
    fn private_addresses_need_an_allow_rule() {
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
            let allow: Vec<AllowRule> =
                allow.iter().map(|a| a.parse().expect("an entry")).collect();
            let address = address.parse().expect("an address");
            assert_eq!(
                is_permitted(host, address, &allow),
                expected,
                "{host} {address}"
            );
        }
    }
}
