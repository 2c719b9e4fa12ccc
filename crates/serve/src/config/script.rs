//! The scripted model: which script it plays.

use std::path::PathBuf;

use super::setting::{optional_path, section};

section! {
    /// Settings of the scripted model.
    Script, "script" {
        /// Script of the scripted model; default is the built-in one. With a pack, every model of
        /// the pack plays this script, without network access.
        file: Option<PathBuf> = "", optional_path;
    }
}
