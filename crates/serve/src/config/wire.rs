//! Settings of the chat wire.

use turnwire_wire::pc3::Version;

use super::setting::section::section;
use super::setting::value::choice;

const VERSION: &[(&str, Version)] = &[("0.5", Version::V05), ("0.4", Version::V04)];

section! {
    /// The chat wire.
    Wire, "wire" {
        /// Version of the chat wire for turns whose request has no `X-Wire-Version` (D-09). Set
        /// `0.4`
        /// for clients that do not know 0.5.
        version: Version = "0.5", choice(VERSION);
    }
}
