//! The chat wire: which version it speaks.

use turnwire_wire::pc3::Version;

use super::setting::section::section;
use super::setting::value::choice;

const VERSION: &[(&str, Version)] = &[("0.5", Version::V05), ("0.4", Version::V04)];

section! {
    /// The chat wire.
    Wire, "wire" {
        /// The version that turns are bound to unless the request says another with
        /// X-Wire-Version (D-09). `0.4` is the way back for clients that do not know 0.5.
        version: Version = "0.5", choice(VERSION);
    }
}
