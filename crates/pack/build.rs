//! Builds the demo pack and the pack of `turnwire relay` into the binary: writes a list of the files of
//! each, as `include_str!`. Without a folder its list is empty.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let packs = manifest_dir.join("../../packs");
    let mut lists = String::new();
    for (name, folder) in [("MARKET", "market"), ("RELAY", "relay")] {
        lists.push_str(&list(name, &packs.join(folder))?);
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("packs.rs"), lists)?;
    // The parent folder: a path that does not exist would make cargo rebuild every time.
    println!("cargo:rerun-if-changed={}", packs.display());
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}

/// The list of the files of one pack.
fn list(name: &str, pack: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    if pack.is_dir() {
        walk(pack, &mut files)?;
    }
    files.sort();
    let mut list = format!("static {name}: &[(&str, &str)] = &[\n");
    for file in files {
        let path = file.strip_prefix(pack).unwrap_or(&file);
        let path = path.to_string_lossy().replace('\\', "/");
        let file = file.canonicalize()?;
        let _ = writeln!(list, "    ({path:?}, include_str!({file:?})),");
    }
    list.push_str("];\n");
    Ok(list)
}

/// Collects the files below a folder, without hidden ones.
fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
