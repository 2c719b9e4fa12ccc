//! What the server may call.

use super::setting::section::section;
use super::setting::value::list;
use turnwire_dial::Allow;

section! {
    /// What the server may call.
    Dial, "dial" {
        /// Host names, addresses and address ranges that may be called although they are on a
        /// private network, between commas. Addresses written in a pack itself are always allowed;
        /// a name that leads into a private network is not, because whoever controls the name
        /// could otherwise reach what only this machine can. Names of a pack's model providers are
        /// allowed, for their calls alone.
        allow: Vec<Allow> = "", list;
    }
}
