//! Reading folders, and the packs that come with the crate.

use super::*;
use crate::check::check;

fn told(files: &Files) -> Vec<String> {
    let report = check(files, &|_| None);
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_skeleton_passes_without_a_word() {
    let files = Files::skeleton("corner_shop");
    assert_eq!(told(&files), [""; 0]);
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
fn the_demo_pack_passes() {
    let files = Files::market();
    // The folder may be missing where the crate is built alone.
    if files.iter().next().is_some() {
        let vars = |_: &str| Some("http://127.0.0.1:8422".to_owned());
        let report = check(&files, &vars);
        let told: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(told, [""; 0]);
    }
}
