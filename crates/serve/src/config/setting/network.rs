//! Networks of IP addresses: `10.0.0.0/8`, or one address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses that begin with the same bits as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// A text that is no [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address nor a network such as 10.0.0.0/8")]
pub struct InvalidNetwork(pub String);

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let invalid = || InvalidNetwork(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let width = number(address).1;
        let bits = match bits {
            None => width,
            Some(bits) if bits.bytes().all(|b| b.is_ascii_digit()) => {
                bits.parse().map_err(|_| invalid())?
            }
            Some(_) => return Err(invalid()),
        };
        (bits <= width)
            .then_some(Self { address, bits })
            .ok_or_else(invalid)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    /// True if `address` is one of its addresses. An IPv4 address written as IPv6 is the same.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((own, width), (other, other_width)) = (number(self.address), number(address));
        let shift = width - self.bits.min(width);
        width == other_width && (shift >= 128 || own >> shift == other >> shift)
    }
}

/// An address as a number, and how many bits it has.
fn number(address: IpAddr) -> (u128, u32) {
    match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_contains_the_addresses_with_its_first_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
            ("192.168.1.7", "192.168.1.7", "192.168.1.6"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "::1", "8.8.8.8"),
        ] {
            let network: Network = network.parse().expect("a network");
            let has = |text: &str| network.contains(text.parse().expect("an address"));
            assert!(has(inside), "{network} {inside}");
            assert!(!has(outside), "{network} {outside}");
        }
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "10.0.0.0/",
            "::/129",
            "proxy",
            "10.0.0.0/+8",
        ] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
