//! Folders with too many files: a list of more than fifteen files has no structure. Group them by
//! noun into folders. Folders of tests are exempt.

use std::collections::BTreeMap;

use super::debt;
use crate::finding::Finding;
use crate::source::Source;

/// The most Rust files that a folder may hold, its `lib.rs` among them.
pub const FILES_MAX: usize = 15;

/// Folders with more than [`FILES_MAX`] files, and entries of the list of debts that no folder needs
/// any more.
pub fn crowded(sources: &[Source]) -> Vec<Finding> {
    let crowded = judge(sources);
    let stale = debt::FOLDERS
        .iter()
        .filter(|folder| !crowded.iter().any(|finding| finding.place == **folder))
        .map(|folder| {
            let message = format!("{folder} is no longer crowded: delete its entry");
            Finding::about(debt::FILE, message)
        });
    let stale: Vec<Finding> = stale.collect();
    let refused = crowded
        .into_iter()
        .filter(|finding| !debt::FOLDERS.contains(&finding.place.as_str()));
    refused.chain(stale).collect()
}

fn judge(sources: &[Source]) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        let folder = source
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        if !folder.split('/').any(|part| part == "tests") {
            *counts.entry(folder).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > FILES_MAX)
        .map(|(folder, count)| {
            let message = format!("{count} files (over {FILES_MAX}): group them by noun");
            Finding::about(folder, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str, files: usize) -> Vec<Source> {
        let file = |number| Source::new(&format!("{path}/f{number}.rs"), "");
        (0..files).map(file).collect()
    }

    #[test]
    fn folder_with_sixteen_files_is_a_finding() {
        let findings = judge(&folder("crates/a/src/b", FILES_MAX + 1));
        let message = "16 files (over 15): group them by noun";
        assert_eq!(findings, [Finding::about("crates/a/src/b", message)]);
        assert_eq!(judge(&folder("crates/a/src/b", FILES_MAX)), []);
    }

    #[test]
    fn files_of_tests_and_of_inner_folders_do_not_count() {
        let mut sources = folder("crates/a/src/b", FILES_MAX);
        sources.extend(folder("crates/a/src/b/c", FILES_MAX));
        sources.extend(folder("crates/a/src/tests", 40));
        sources.extend(folder("e2e/tests/it/engine", 40));
        assert_eq!(judge(&sources), []);
    }
}
