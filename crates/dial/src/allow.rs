//! What the operator allows beyond public addresses: a host by name, an address, or a network.

use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use crate::address::plain;

/// Not a host, an address or a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host name, an address or a network; write `ccs.internal`, `10.1.2.3` or `10.0.0.0/8`"
)]
pub struct BadAllow(pub String);

/// One entry of the allow list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow {
    /// A host by its name, whatever private address it has.
    Host(String),
    /// All addresses whose first bits are these.
    Network(IpAddr, u8),
}

impl FromStr for Allow {
    type Err = BadAllow;

    fn from_str(text: &str) -> Result<Self, BadAllow> {
        let bad = || BadAllow(text.to_owned());
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| bad())?;
            let bits: u8 = bits.parse().map_err(|_| bad())?;
            let width = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= width)
                .then_some(Self::Network(address, bits))
                .ok_or_else(bad);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            return Ok(Self::Network(address, bits));
        }
        let host = name(text);
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        (host.len() <= 253 && host.split('.').all(label))
            .then_some(Self::Host(host))
            .ok_or_else(bad)
    }
}

impl Allow {
    /// The host that an operator wrote into an address of their own settings: it may be spoken to
    /// wherever it is, and no other may because of it. None where the host is an address in
    /// numbers: that is the operator's word already, and an entry would open it to other names.
    pub fn host_of(url: &Url) -> Option<Self> {
        let entry: Self = url.host_str()?.parse().ok()?;
        matches!(entry, Self::Host(_)).then_some(entry)
    }

    /// Whether it names this host.
    pub(crate) fn names(&self, host: &str) -> bool {
        matches!(self, Self::Host(allowed) if *allowed == name(host))
    }

    /// Whether this address is in it.
    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        let Self::Network(network, bits) = self else {
            return false;
        };
        let (network, address) = (plain(*network), plain(address));
        match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from((*bits).min(32));
                network.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from((*bits).min(128));
                network.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// A host name in the one spelling that is compared.
pub(crate) fn name(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> Allow {
        text.parse().expect("an entry")
    }

    #[test]
    fn hosts_addresses_and_networks_are_told_apart() {
        assert_eq!(allow("CCS.Internal."), Allow::Host("ccs.internal".into()));
        assert!(allow("ccs.internal").names("ccs.INTERNAL"));
        assert!(!allow("ccs.internal").names("x.ccs.internal"));
        assert!(allow("10.1.2.3").holds("10.1.2.3".parse().expect("an address")));
        for bad in [
            "",
            "a b",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "x/8",
            "http://a",
            "a..b",
        ] {
            assert_eq!(bad.parse::<Allow>(), Err(BadAllow(bad.to_owned())));
        }
    }

    #[test]
    fn the_host_of_an_address_is_a_name_and_never_a_network() {
        let host_of = |url: &str| Allow::host_of(&url.parse().expect("a url"));
        let model = Some(Allow::Host("models.internal".into()));
        assert_eq!(host_of("http://Models.internal:8090/v1"), model);
        assert_eq!(host_of("http://10.1.2.3/v1"), None);
        assert_eq!(host_of("http://[fd12::1]/v1"), None);
        assert_eq!(host_of("data:,x"), None);
    }

    #[test]
    fn a_network_holds_what_begins_with_its_bits() {
        let cases = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/31", "10.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("fd00::/8", "fd12::1", true),
            ("::/0", "fd12::1", true),
            ("fd00::/8", "fe00::1", false),
        ];
        for (network, address, held) in cases {
            let address = address.parse().expect("an address");
            assert_eq!(allow(network).holds(address), held, "{network} {address}");
        }
    }
}
