//! The pack: which folder of files the server runs.

use std::path::PathBuf;

use super::setting::{number, optional_path, section};

section! {
    /// Settings of the pack.
    Pack, "pack" {
        /// Folder of the pack; default is the built-in demo pack, or the script alone if
        /// `script.file` is set.
        dir: Option<PathBuf> = "", optional_path;
        /// Interval at which the pack folder is checked for changes; 0 reloads on SIGHUP only. One
        /// second is as fast as one can save and ask.
        reload_ms: u64 = "1000", number(0..=3_600_000);
    }
}
