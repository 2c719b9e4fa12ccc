//! The scripted model: which script it plays.

use std::path::PathBuf;

use super::setting::section::section;
use super::setting::value::path;

section! {
    /// The scripted model.
    Script, "script" {
        /// The script it plays; the one that is built in if none is named. With a pack, every model
        /// of the pack plays it, and nobody is asked over the network.
        file: Option<PathBuf> = "", path;
    }
}
