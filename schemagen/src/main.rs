//! Writes `schema/` below the folder given as argument: `cargo xtask schema` calls it.

use std::path::Path;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let root = std::env::args_os().nth(1);
    let root = root.context("usage: turnwire-schemagen ROOT")?;
    turnwire_schemagen::write(Path::new(&root))
}
