//! The operator's allow list: hosts, addresses and networks that requests may reach although they
//! are not public.

use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use crate::address::unwrap_ipv4;

/// A text that is not an [`AllowRule`]: a host name, an address or a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host name, an address or a network; write `ccs.internal`, `10.1.2.3` or `10.0.0.0/8`"
)]
pub struct InvalidAllowRule(pub String);

/// One entry of the allow list; parsed from text such as `ccs.internal` or `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowRule {
    /// A host name, with any private address it resolves to.
    Host(String),
    /// A network: an address and the number of leading bits that must match.
    Network(IpAddr, u8),
}

impl FromStr for AllowRule {
    type Err = InvalidAllowRule;

    fn from_str(text: &str) -> Result<Self, InvalidAllowRule> {
        let invalid = || InvalidAllowRule(text.to_owned());
        let (address, bits) = text.split_once('/').unzip();
        if let Ok(address) = address.unwrap_or(text).parse::<IpAddr>() {
            let width = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Ok(width), str::parse).map_err(|_| invalid())?;
            return (bits <= width)
                .then_some(Self::Network(address, bits))
                .ok_or_else(invalid);
        }
        let host = normalize_host(text);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        (host.len() <= 253 && host.split('.').all(is_label))
            .then_some(Self::Host(host))
            .ok_or_else(invalid)
    }
}

impl AllowRule {
    /// The rule for the host of a URL in the operator's settings: the host may be private, and no
    /// other host becomes reachable. `None` for an IP address: [`Dialer`](crate::Dialer) accepts an address
    /// that the operator wrote, and a network rule would also allow other names that resolve to it.
    pub fn for_host_of(url: &Url) -> Option<Self> {
        let entry: Self = url.host_str()?.parse().ok()?;
        matches!(entry, Self::Host(_)).then_some(entry)
    }

    /// True if the rule names this host.
    pub(crate) fn matches_host(&self, host: &str) -> bool {
        matches!(self, Self::Host(allowed) if *allowed == normalize_host(host))
    }

    /// True if the rule is a network that contains `address`.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let Self::Network(network, bits) = self else {
            return false;
        };
        let bits_of = |address| match unwrap_ipv4(address) {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let ((network, width), (address, address_width)) = (bits_of(*network), bits_of(address));
        let shift = width - u32::from(*bits).min(width);
        width == address_width && network.checked_shr(shift) == address.checked_shr(shift)
    }
}

/// The form in which host names are compared: lower case, without the final dot.
pub(crate) fn normalize_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> AllowRule {
        text.parse().expect("an entry")
    }

    #[test]
    fn rules_parse_as_host_address_or_network() {
        assert_eq!(
            allow("CCS.Internal."),
            AllowRule::Host("ccs.internal".into())
        );
        assert!(allow("ccs.internal").matches_host("ccs.INTERNAL"));
        assert!(!allow("ccs.internal").matches_host("x.ccs.internal"));
        assert!(allow("10.1.2.3").contains("10.1.2.3".parse().expect("an address")));
        for invalid in [
            "",
            "a b",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "x/8",
            "http://a",
            "a..b",
        ] {
            assert_eq!(
                invalid.parse::<AllowRule>(),
                Err(InvalidAllowRule(invalid.to_owned()))
            );
        }
    }

    #[test]
    fn rule_for_url_host_is_a_name_and_never_a_network() {
        let host_of = |url: &str| AllowRule::for_host_of(&url.parse().expect("a url"));
        let model = Some(AllowRule::Host("models.internal".into()));
        assert_eq!(host_of("http://Models.internal:8090/v1"), model);
        assert_eq!(host_of("http://10.1.2.3/v1"), None);
        assert_eq!(host_of("http://[fd12::1]/v1"), None);
        assert_eq!(host_of("data:,x"), None);
    }

    #[test]
    fn network_contains_addresses_with_its_prefix() {
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
        for (network, address, expected) in cases {
            let address = address.parse().expect("an address");
            assert_eq!(
                allow(network).contains(address),
                expected,
                "{network} {address}"
            );
        }
    }
}
