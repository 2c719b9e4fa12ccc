//! Turns: how long one may take.

use super::section::section;
use super::value::number;

section! {
    /// Turns.
    Turn, "turn" {
        /// Time after which a turn is cancelled (D-44): longer than any answer a person waits
        /// for.
        timeout_ms: u64 = "600000", number(10..=86_400_000);
    }
}
