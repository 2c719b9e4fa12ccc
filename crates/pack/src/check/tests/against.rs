//! A pack against an earlier version of it.

use super::*;

const SHOP: &str = "verticals/shop/status_events.yaml";

/// What is said about the good pack with changes, against the good pack.
fn against(changes: &[Change<'_>]) -> Vec<String> {
    let findings = check_against(&files(changes), &files(&[]), "old");
    findings.iter().map(ToString::to_string).collect()
}

// S1-075
#[test]
fn dropped_status_id_is_refused() {
    assert_eq!(against(&[]), [""; 0]);
    let gone = |file: &str, id: &str| {
        format!(
            "{file}:1:1: error: the status id `{id}` was active in old and is gone; write: the \
             entry of `{id}` with `lifecycle: deprecated` and a `note`; a new name is an entry of \
             its own"
        )
    };
    let renamed = Swap(SHOP, "id: searching_offers", "id: finding_offers");
    assert_eq!(against(&[renamed]), [gone(SHOP, "searching_offers")]);
    let platform = "platform/status_events.yaml";
    let expected = [gone(platform, "searching_offers")];
    assert_eq!(against(&[Drop(SHOP)]), expected);
}

// S1-074
#[test]
fn rename_is_an_old_id_that_is_deprecated_and_a_new_one() {
    let entry = files(&[]).get(SHOP).expect("a file").to_owned();
    let deprecated = entry.replace("lifecycle: active", "lifecycle: deprecated\n  note: use it");
    let added = entry.replace("id: searching_offers", "id: finding_offers");
    let renamed = format!("{deprecated}{added}");
    assert_eq!(against(&[Write(SHOP, &renamed)]), [""; 0]);
    // What was deprecated before may go.
    let earlier = files(&[Write(SHOP, &renamed)]);
    let now = files(&[Write(SHOP, &added)]);
    assert_eq!(check_against(&now, &earlier, "old"), []);
}

#[test]
fn unreadable_file_of_either_version_is_not_a_dropped_id() {
    let broken = Write(SHOP, "- id: [");
    assert_eq!(against(std::slice::from_ref(&broken)), [""; 0]);
    let findings = check_against(&files(&[]), &files(&[broken]), "old");
    let reported: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        matches!(&reported[..], [only] if only.starts_with("old/verticals/shop/status_events.yaml:")),
        "{reported:?}"
    );
}
