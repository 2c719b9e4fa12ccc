//! Settings of the chat wire.

use turnwire_wire::pc3::WireVersion;

use super::setting::{choice, section};

const VERSION: &[(&str, WireVersion)] = &[("0.5", WireVersion::V05), ("0.4", WireVersion::V04)];

section! {
    /// Settings of the chat wire.
    Wire, "wire" {
        /// Version of the chat wire for turns whose request has no `X-Wire-Version` (D-09). Set
        /// `0.4` for clients that do not know 0.5.
        version: WireVersion = "0.5", choice(VERSION);
    }
}
