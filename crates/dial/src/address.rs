//! Classifies IP addresses: public, loopback, private, or forbidden.
//!
//! An IPv4 address embedded in an IPv6 address (mapped, compatible, 6to4, NAT64) is classified as
//! the IPv4 address; otherwise the embedding would bypass the guard.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a request may go to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressClass {
    /// Globally reachable: always allowed.
    Public,
    /// The local host: allowed for `localhost` and for entries of the allow list.
    Loopback,
    /// A private or reserved network: allowed for entries of the allow list.
    Private,
    /// Link-local, where cloud metadata services listen: never allowed.
    Forbidden,
}

/// The IPv6 metadata service of a large cloud provider, within a private range.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

pub(crate) fn classify(address: IpAddr) -> AddressClass {
    match unwrap_ipv4(address) {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// The embedded IPv4 address, if `address` is an IPv6 address that embeds one.
pub(crate) fn unwrap_ipv4(address: IpAddr) -> IpAddr {
    let IpAddr::V6(ipv6) = address else {
        return address;
    };
    let [a, b, c, .., y, z] = ipv6.segments();
    let last_32_bits = Ipv4Addr::from((u32::from(y) << 16) | u32::from(z));
    let is_compatible = ipv6.segments()[..6] == [0; 6];
    let mapped = ipv6.to_ipv4_mapped();
    let is_nat64 = ipv6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    if let Some(ipv4) = mapped {
        IpAddr::V4(ipv4)
    } else if is_nat64 || (is_compatible && !ipv6.is_loopback() && !ipv6.is_unspecified()) {
        IpAddr::V4(last_32_bits)
    } else if a == 0x2002 {
        IpAddr::V4(Ipv4Addr::from((u32::from(b) << 16) | u32::from(c)))
    } else {
        address
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = address.octets();
    if address.is_link_local() {
        AddressClass::Forbidden
    } else if address.is_loopback() {
        AddressClass::Loopback
    } else if address.is_private()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        // "This network", carrier-grade NAT, protocol assignments, benchmarking and reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
    {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let first = address.segments()[0];
    if first & 0xffc0 == 0xfe80 || address == METADATA_V6 {
        AddressClass::Forbidden
    } else if address.is_loopback() {
        AddressClass::Loopback
    } else if first & 0xe000 == 0x2000 && !(first == 0x2001 && address.segments()[1] == 0xdb8) {
        AddressClass::Public
    } else {
        // Unique local, site local, multicast, unspecified, documentation: only 2000::/3 is
        // assigned to public use.
        AddressClass::Private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // G5
    #[test]
    fn embedded_ipv4_is_classified_as_ipv4() {
        let cases = [
            ("127.0.0.1", AddressClass::Loopback),
            ("127.255.255.254", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("::ffff:127.0.0.1", AddressClass::Loopback),
            ("::127.0.0.1", AddressClass::Loopback),
            ("64:ff9b::127.0.0.1", AddressClass::Loopback),
            ("2002:7f00:1::", AddressClass::Loopback),
            ("10.0.0.1", AddressClass::Private),
            ("172.16.0.1", AddressClass::Private),
            ("192.168.1.1", AddressClass::Private),
            ("100.64.0.1", AddressClass::Private),
            ("0.0.0.0", AddressClass::Private),
            ("0.1.2.3", AddressClass::Private),
            ("224.0.0.1", AddressClass::Private),
            ("255.255.255.255", AddressClass::Private),
            ("198.18.0.1", AddressClass::Private),
            ("240.0.0.1", AddressClass::Private),
            ("::", AddressClass::Private),
            ("::ffff:10.0.0.1", AddressClass::Private),
            ("fd12::1", AddressClass::Private),
            ("fec0::1", AddressClass::Private),
            ("ff02::1", AddressClass::Private),
            ("2001:db8::1", AddressClass::Private),
            ("169.254.169.254", AddressClass::Forbidden),
            ("::ffff:169.254.169.254", AddressClass::Forbidden),
            ("64:ff9b::169.254.169.254", AddressClass::Forbidden),
            ("2002:a9fe:a9fe::", AddressClass::Forbidden),
            ("fe80::1", AddressClass::Forbidden),
            ("febf::1", AddressClass::Forbidden),
            ("fd00:ec2::254", AddressClass::Forbidden),
            ("8.8.8.8", AddressClass::Public),
            ("172.32.0.1", AddressClass::Public),
            ("2606:4700::1", AddressClass::Public),
        ];
        for (address, expected) in cases {
            let parsed = address.parse().expect("an address");
            assert_eq!(classify(parsed), expected, "{address}");
        }
    }
}
