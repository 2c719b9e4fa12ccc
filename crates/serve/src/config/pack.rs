//! The pack: which folder of files the server runs.

use std::path::PathBuf;

use super::setting::section::section;
use super::setting::value::{number, path};

section! {
    /// The pack.
    Pack, "pack" {
        /// The pack's folder; if none is named, the demo pack that is built in runs, or the
        /// script alone where `script.file` names one.
        dir: Option<PathBuf> = "", path;
        /// How often the folder is looked at for changes; 0 leaves reloading to SIGHUP. A second
        /// is as fast as one can save and ask.
        reload_ms: u64 = "1000", number(0..=3_600_000);
    }
}
