//! How the server is reached from outside.

use crate::config::setting::network::Network;
use crate::config::setting::site::{self, SiteOrigin};
use crate::config::setting::{host_names, list, section};

section! {
    /// How the server is reached from outside.
    Server, "server" {
        /// The scheme, host and port under which clients reach the server, such as
        /// `https://chat.example.com`: the proxy in front ends TLS. URLs in answers begin with it,
        /// with `wss` for `https`. Needs authentication.
        public_url: Option<SiteOrigin> = "", site::public;
        /// Further names that requests may have in their Host header once there is authentication,
        /// separated by commas, such as `turnwire.internal`. Loopback names, IP addresses and the
        /// host of `server.public_url` are always accepted then.
        hosts: Vec<String> = "", host_names;
        /// Addresses and networks of proxies whose `Forwarded` and `X-Forwarded-*` headers are
        /// believed, separated by commas. Those of everybody else are ignored.
        trusted_proxies: Vec<Network> = "", list;
    }
}
