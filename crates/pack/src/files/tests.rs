//! Reading folders, and the packs that come with the crate.

use super::*;
use crate::check::check;

fn reported(files: &PackFiles) -> Vec<String> {
    let report = check(files, &|_| None);
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn skeleton_has_no_findings() {
    let files = PackFiles::skeleton("corner_shop");
    assert_eq!(reported(&files), [""; 0]);
    let pack = check(&files, &|_| None)
        .pack
        .expect("no finding, so a pack");
    assert_eq!(pack.name, "corner_shop");
    assert_eq!(pack.orchestrator.model, "scripted:corner_shop");
    assert_eq!(pack.agents.len(), 1);
    assert_eq!(pack.scripts[0].0, "corner_shop");
    assert!(files.iter().all(|(_, text)| !text.contains("{name}")));
}

#[test]
fn demo_pack_has_no_errors() {
    let files = PackFiles::market();
    assert!(files.get("pack.yaml").is_some());
    let report = check(&files, &|_: &str| None);
    let reported: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(reported, [""; 0]);
}

/// A folder that is gone when the test is over.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("turnwire-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a folder for the test");
        Self(dir)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("its folder");
        std::fs::write(path, bytes).expect("the file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn folder_is_read_as_written() {
    let folder = Folder::new("skeleton");
    let files = PackFiles::skeleton("corner");
    for (path, text) in files.iter() {
        folder.write(path, text.as_bytes());
    }
    folder.write(".git/config", b"hidden");
    folder.write(".pack.yaml.swp", b"hidden");
    let read = PackFiles::read(&folder.0).expect("a folder that can be read");
    assert_eq!(read, files);
    assert_eq!(read.digest(), files.digest());
}

#[test]
fn binary_and_large_files_are_reported() {
    let folder = Folder::new("odd");
    folder.write("pack.yaml", b"name: \xff\xfe");
    folder.write("orchestrator.yaml", &vec![b'#'; FILE_BYTES_MAX + 10]);
    folder.write("cassettes/a.jsonl", &vec![b'#'; CASSETTE_BYTES_MAX + 10]);
    folder.write("cassettes/b.jsonl", &vec![b'#'; FILE_BYTES_MAX + 10]);
    let read = PackFiles::read(&folder.0).expect("a folder that can be read");
    assert_eq!(
        reported(&read),
        [
            "cassettes/a.jsonl:1:1: error: the file has more than 16777216 bytes; write: a shorter file",
            "orchestrator.yaml:1:1: error: the file has more than 1048576 bytes; write: a shorter file",
            "pack.yaml:1:1: error: the file is not UTF-8 text; write: it again as UTF-8",
        ]
    );
}

/// What stands in the folder beside files must not stop anybody: a pipe would for ever.
#[cfg(unix)]
#[test]
fn special_files_are_skipped_and_reported() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let folder = Folder::new("kinds");
    for (path, text) in PackFiles::skeleton("corner").iter() {
        folder.write(path, text.as_bytes());
    }
    let pipe = folder.0.join("prompts/pipe.md");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo can be run").success());
    let _socket = UnixListener::bind(folder.0.join("prompts/socket.md")).expect("a socket");
    symlink("/dev/zero", folder.0.join("routing.yaml")).expect("a link");
    symlink("/", folder.0.join("schemas")).expect("a link");
    symlink("..", folder.0.join("prompts/round")).expect("a link");
    folder.write("notes/a/b/c/d/e.md", b"deep");
    let read = PackFiles::read(&folder.0).expect("a folder that can be read");
    let reported = reported(&read);
    for line in [
        "prompts/pipe.md:1:1: warning: this is not a file: it is not read; write: a file of the pack here, or nothing",
        "prompts/socket.md:1:1: warning: this is not a file: it is not read; write: a file of the pack here, or nothing",
        "routing.yaml:1:1: warning: this is not a file: it is not read; write: a file of the pack here, or nothing",
        "schemas:1:1: warning: a link to a folder outside of the pack: it is not read; write: a file of the pack here, or nothing",
        "notes/a/b/c/d:1:1: warning: a folder this deep is not read; write: a file of the pack here, or nothing",
    ] {
        assert!(
            reported.iter().any(|reported| reported == line),
            "{line}\n{reported:#?}"
        );
    }
    assert!(
        !reported.iter().any(|line| line.contains(": error: ")),
        "{reported:#?}"
    );
}

#[cfg(unix)]
#[test]
fn evals_are_skipped_and_inner_links_followed() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    let files = PackFiles::skeleton("corner");
    for (path, text) in files.iter() {
        folder.write(&format!(".data/{path}"), text.as_bytes());
    }
    for entry in std::fs::read_dir(folder.0.join(".data")).expect("it was written") {
        let name = entry.expect("an entry").file_name();
        symlink(Path::new(".data").join(&name), folder.0.join(&name)).expect("a link");
    }
    symlink("/", folder.0.join("evals")).expect("a link");
    let read = PackFiles::read(&folder.0).expect("a folder that can be read");
    assert_eq!(read, files);
}

#[test]
fn missing_folder_is_named() {
    let error = PackFiles::read(Path::new("no/such/folder")).expect_err("it is not there");
    assert!(
        error
            .to_string()
            .starts_with("no/such/folder: cannot be read: "),
        "{error}"
    );
}

#[test]
fn digest_covers_names_and_texts() {
    let digest = |pairs: [(&str, &str); 2]| PackFiles::from_pairs(pairs).digest();
    let one = digest([("a", "b"), ("c", "d")]);
    assert_eq!(
        one,
        digest([("c", "d"), ("a", "b")]),
        "order does not matter"
    );
    assert_ne!(one, digest([("a", "bc"), ("d", "")]));
    assert_ne!(one, digest([("a", "b"), ("c", "e")]));
}
