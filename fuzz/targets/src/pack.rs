//! A folder of a pack as one text: a line `=== PATH` begins each file.

use turnwire_pack::{FindingLevel, PackFiles, check};

/// The lines that begin a file.
pub(crate) const MARK: &str = "=== ";

/// A folder: whatever it has, the check ends with a pack or with an error that says where.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (line.strip_prefix(MARK), files.last_mut()) {
            (Some(path), _) => files.push((path.trim_end(), String::new())),
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => {}
        }
    }
    let files = PackFiles::from_pairs(files);
    // One variable is set, so that addresses and keys that name it are read further.
    let report = check(&files, &|name| {
        (name == "SET").then(|| "http://127.0.0.1:1".to_owned())
    });
    let has_error = (report.findings.iter()).any(|finding| finding.level == FindingLevel::Error);
    assert_eq!(report.pack.is_none(), has_error, "{:?}", report.findings);
    for finding in &report.findings {
        assert!(!finding.message.is_empty());
    }
}
