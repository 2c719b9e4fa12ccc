//! Settings of outbound calls.

use crate::config::setting::{list, section};
use turnwire_dial::AllowRule;

section! {
    /// Settings of outbound calls.
    Dial, "dial" {
        /// Host names, addresses and address ranges on private networks that may be called,
        /// separated by commas. Addresses written in a pack are always allowed; a name that
        /// resolves into a private network is not, because whoever controls the name could
        /// otherwise reach internal hosts. Names of a pack's model providers are allowed for
        /// model calls only.
        allow: Vec<AllowRule> = "", list;
    }
}
