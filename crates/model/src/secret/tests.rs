//! Keys as operators leave them, and what is never said about them.

use std::io::ErrorKind;

use super::*;

fn variable(value: &str) -> Result<Secret, BadKey> {
    Secret::from_variable("SHOP_KEY", Some(value.to_owned()))
}

/// A file of this test run alone.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let name = format!("turnwire-key-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, content).expect("written");
    path
}

#[test]
fn a_key_is_what_is_there_without_the_blanks_around_it() {
    for value in ["sk-secret", " sk-secret\n", "\tsk-secret\r\n"] {
        assert_eq!(variable(value).expect("a key").expose(), "sk-secret");
        let path = file("good", value.as_bytes());
        let key = Secret::from_file(&path);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(key.expect("a key").expose(), "sk-secret");
    }
    let long = "k".repeat(KEY_BYTES_MAX);
    assert_eq!(variable(&long).expect("a key").expose(), long);
}

#[test]
fn g6_an_error_names_the_place_and_never_what_is_there() {
    let from = || KeySource::Variable("SHOP_KEY".into());
    let missing = Secret::from_variable("SHOP_KEY", None);
    let cases = [
        (missing, BadKey::Missing(from())),
        (variable(""), BadKey::Empty(from())),
        (variable(" \n"), BadKey::Empty(from())),
        (variable("sk secret"), BadKey::NotVisible(from())),
        (variable("sk-sécret"), BadKey::NotVisible(from())),
        (variable("sk-secret\nx: y"), BadKey::NotVisible(from())),
        (variable("sk-secret\u{7f}"), BadKey::NotVisible(from())),
        (
            variable(&"secret".repeat(KEY_BYTES_MAX)),
            BadKey::TooLong(from()),
        ),
    ];
    for (found, expected) in cases {
        let error = found.expect_err("no key");
        assert_eq!(error, expected);
        let said = format!("{error} {error:?}");
        assert!(
            said.contains("SHOP_KEY") && !said.contains("cret"),
            "{said}"
        );
    }
}

#[test]
fn a_file_that_is_no_key_is_named() {
    let missing = std::env::temp_dir().join("turnwire-no-such-key");
    let error = Secret::from_file(&missing).expect_err("no file");
    let from = KeySource::File(missing);
    assert_eq!(error, BadKey::Unreadable(from, ErrorKind::NotFound));
    assert!(
        error.to_string().contains("turnwire-no-such-key"),
        "{error}"
    );

    let folder = std::env::temp_dir();
    let error = Secret::from_file(&folder).expect_err("a folder");
    let from = KeySource::File(folder);
    assert_eq!(error, BadKey::Unreadable(from, ErrorKind::InvalidInput));

    let large = file("large", &vec![b'k'; KEY_BYTES_MAX + 1]);
    let error = Secret::from_file(&large);
    std::fs::remove_file(&large).expect("removed");
    let from = KeySource::File(large);
    assert_eq!(error.expect_err("too long"), BadKey::TooLong(from));
}

#[test]
fn g6_a_key_is_not_shown() {
    let key = variable("sk-secret").expect("a key");
    assert_eq!(
        format!("{key:?} {:?}", Some(&key)),
        "Secret(…) Some(Secret(…))"
    );
}
