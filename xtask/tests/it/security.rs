//! `SECURITY.md`: every test that it names as the proof of a mitigation exists.

use std::path::Path;

use turnwire_xtask::tidy;

/// Adds the text of every Rust file below `folder`.
fn sources(folder: &Path, texts: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, texts);
        } else if path.extension().is_some_and(|name| name == "rs") {
            texts.push_str(&std::fs::read_to_string(&path).expect("a file"));
        }
    }
}

/// The names in backticks that are written as those of tests are: words in lower case, joined.
fn test_names(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let is_name = |text: &&str| {
        let words = text.split('_').count();
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        words > 2 && text.chars().all(letters)
    };
    quoted.filter(is_name).collect()
}

#[test]
fn threat_model_names_tests_that_exist() {
    let root = tidy::root();
    let page = std::fs::read_to_string(root.join("SECURITY.md")).expect("the page");
    let mut texts = String::new();
    for folder in ["apps", "crates", "e2e"] {
        sources(&root.join(folder), &mut texts);
    }
    let names = test_names(&page);
    assert!(names.len() > 35, "only {} names", names.len());
    let is_missing = |name: &&&str| !texts.contains(&format!("fn {name}()"));
    let missing: Vec<_> = names.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn threat_model_covers_every_attack_of_the_plan() {
    let root = tidy::root();
    let page = std::fs::read_to_string(root.join("SECURITY.md")).expect("the page");
    for attack in 1..=10 {
        assert!(page.contains(&format!("(G{attack})")), "no G{attack}");
    }
}
