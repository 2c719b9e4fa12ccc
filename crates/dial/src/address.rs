//! What an address is: public, of this machine or network, or never to be spoken to.
//!
//! A version 4 address inside a version 6 one (mapped, compatible, 6to4, NAT64) is judged as the
//! version 4 address it stands for; otherwise the guard could be walked around.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who is behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anyone.
    Public,
    /// This machine.
    Loopback,
    /// This network, or nobody in particular: the operator must have named it.
    Private,
    /// The link: metadata services of clouds live there. Never.
    Never,
}

/// The metadata service of a large cloud over version 6, inside a private range.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Who is behind `address`.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match plain(address) {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

/// The address that is meant: version 4 where a version 6 one only wraps it.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(wide) = address else {
        return address;
    };
    let [a, b, c, .., y, z] = wide.segments();
    let tail = Ipv4Addr::from((u32::from(y) << 16) | u32::from(z));
    let six = wide.segments()[..6] == [0; 6];
    let mapped = wide.to_ipv4_mapped();
    let nat64 = wide.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    if let Some(narrow) = mapped {
        IpAddr::V4(narrow)
    } else if nat64 || (six && !wide.is_loopback() && !wide.is_unspecified()) {
        IpAddr::V4(tail)
    } else if a == 0x2002 {
        IpAddr::V4(Ipv4Addr::from((u32::from(b) << 16) | u32::from(c)))
    } else {
        address
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    if address.is_link_local() {
        Reach::Never
    } else if address.is_loopback() {
        Reach::Loopback
    } else if address.is_private()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        // This host on this network, carrier-grade NAT, protocol assignments, benchmarks, and
        // what is kept for later.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
    {
        Reach::Private
    } else {
        Reach::Public
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let first = address.segments()[0];
    if first & 0xffc0 == 0xfe80 || address == METADATA_V6 {
        Reach::Never
    } else if address.is_loopback() {
        Reach::Loopback
    } else if first & 0xe000 == 0x2000 && !(first == 0x2001 && address.segments()[1] == 0xdb8) {
        Reach::Public
    } else {
        // Unique local, site local, multicast, unspecified, documentation: only 2000::/3 is
        // given out to the public.
        Reach::Private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g5_every_form_of_an_address_is_judged_as_what_it_stands_for() {
        let cases = [
            ("127.0.0.1", Reach::Loopback),
            ("127.255.255.254", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("::127.0.0.1", Reach::Loopback),
            ("64:ff9b::127.0.0.1", Reach::Loopback),
            ("2002:7f00:1::", Reach::Loopback),
            ("10.0.0.1", Reach::Private),
            ("172.16.0.1", Reach::Private),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("0.0.0.0", Reach::Private),
            ("0.1.2.3", Reach::Private),
            ("224.0.0.1", Reach::Private),
            ("255.255.255.255", Reach::Private),
            ("198.18.0.1", Reach::Private),
            ("240.0.0.1", Reach::Private),
            ("::", Reach::Private),
            ("::ffff:10.0.0.1", Reach::Private),
            ("fd12::1", Reach::Private),
            ("fec0::1", Reach::Private),
            ("ff02::1", Reach::Private),
            ("2001:db8::1", Reach::Private),
            ("169.254.169.254", Reach::Never),
            ("::ffff:169.254.169.254", Reach::Never),
            ("64:ff9b::169.254.169.254", Reach::Never),
            ("2002:a9fe:a9fe::", Reach::Never),
            ("fe80::1", Reach::Never),
            ("febf::1", Reach::Never),
            ("fd00:ec2::254", Reach::Never),
            ("8.8.8.8", Reach::Public),
            ("172.32.0.1", Reach::Public),
            ("2606:4700::1", Reach::Public),
        ];
        for (address, expected) in cases {
            let parsed = address.parse().expect("an address");
            assert_eq!(reach(parsed), expected, "{address}");
        }
    }
}
