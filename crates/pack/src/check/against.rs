//! Compares the status ids of a pack with those of an earlier version of it.
//!
//! Clients bind icons and animations to a status id, and a log that was written with the id is still
//! read: an id stays until it was deprecated (S1-075). There is no rename; the new id is added and the
//! old one deprecated (S1-074).

use crate::check::folder::{self, PLATFORM};
use crate::check::report::{FileReport, text_of, word};
use crate::files::PackFiles;
use crate::finding::{Findings, PackFinding};
use crate::pack::status::StatusLifecycle;
use crate::text::wording::one_line;
use crate::yaml::TextPosition;

/// The errors of a pack that lacks an active status id of `earlier`. Files that cannot be read are
/// reported: those of `earlier` with `earlier_name` before their path, those of the pack by
/// [`check`](crate::check()) alone.
pub fn check_against(
    files: &PackFiles,
    earlier: &PackFiles,
    earlier_name: &str,
) -> Vec<PackFinding> {
    let mut reported = Findings::default();
    let now = folder::fragments(files, &mut Findings::default());
    let before = folder::fragments(earlier, &mut reported);
    let mut findings = Findings::default();
    // An id may be in a file that cannot be read, which `check` reports.
    if now.iter().all(|fragment| fragment.source.is_some()) {
        let entries = now.iter().flat_map(|fragment| &fragment.source).flatten();
        let ids: Vec<String> = entries.map(|entry| text_of(&entry.value.id)).collect();
        for fragment in &before {
            let file = match files.get(&fragment.file) {
                Some(_) => fragment.file.as_str(),
                None => PLATFORM,
            };
            let mut report = FileReport::new(file, &mut findings);
            for entry in fragment.source.iter().flatten() {
                let id = text_of(&entry.value.id);
                let was_active = word(&entry.value.lifecycle) != Some(StatusLifecycle::Deprecated);
                if was_active && !id.is_empty() && !ids.contains(&id) {
                    let id = one_line(&id);
                    let message =
                        format!("the status id `{id}` was active in {earlier_name} and is gone");
                    let instead = format!(
                        "the entry of `{id}` with `lifecycle: deprecated` and a `note`; a new name \
                         is an entry of its own"
                    );
                    report.error(TextPosition::TOP, message, instead);
                }
            }
        }
    }
    let unreadable = reported.sorted().into_iter().map(|finding| PackFinding {
        file: format!("{earlier_name}/{}", finding.file),
        ..finding
    });
    unreadable.chain(findings.sorted()).collect()
}
