//! Reading keys: accepted forms, errors, and no key text in any message. Sources are variables and
//! files.

use std::io::ErrorKind;

use super::*;

fn variable(value: &str) -> Result<ApiKey, ApiKeyError> {
    ApiKey::from_variable("SHOP_KEY", Some(value.to_owned()))
}

/// Writes a file whose name is unique to this test process.
fn write_file(name: &str, content: &[u8]) -> PathBuf {
    let name = format!("turnwire-key-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, content).expect("written");
    path
}

#[test]
fn key_is_trimmed_text_of_variable_or_file() {
    for value in ["sk-secret", " sk-secret\n", "\tsk-secret\r\n"] {
        assert_eq!(variable(value).expect("a key").expose(), "sk-secret");
        let path = write_file("good", value.as_bytes());
        let key = ApiKey::from_file(&path);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(key.expect("a key").expose(), "sk-secret");
    }
    let long = "k".repeat(KEY_BYTES_MAX);
    assert_eq!(variable(&long).expect("a key").expose(), long);
}

// G6
#[test]
fn key_error_names_the_source_and_hides_the_content() {
    let source = || KeySource::Variable("SHOP_KEY".into());
    let missing = ApiKey::from_variable("SHOP_KEY", None);
    let cases = [
        (missing, ApiKeyError::Missing(source())),
        (variable(""), ApiKeyError::Empty(source())),
        (variable(" \n"), ApiKeyError::Empty(source())),
        (variable("sk secret"), ApiKeyError::NotVisible(source())),
        (variable("sk-sécret"), ApiKeyError::NotVisible(source())),
        (
            variable("sk-secret\nx: y"),
            ApiKeyError::NotVisible(source()),
        ),
        (
            variable("sk-secret\u{7f}"),
            ApiKeyError::NotVisible(source()),
        ),
        (
            variable(&"secret".repeat(KEY_BYTES_MAX)),
            ApiKeyError::TooLong(source()),
        ),
    ];
    for (result, expected) in cases {
        let error = result.expect_err("no key");
        assert_eq!(error, expected);
        let message = format!("{error} {error:?}");
        assert!(
            message.contains("SHOP_KEY") && !message.contains("cret"),
            "{message}"
        );
    }
}

#[test]
fn unusable_key_file_is_named_in_the_error() {
    let missing = std::env::temp_dir().join("turnwire-no-such-key");
    let error = ApiKey::from_file(&missing).expect_err("no file");
    let source = KeySource::File(missing);
    assert_eq!(error, ApiKeyError::Unreadable(source, ErrorKind::NotFound));
    assert!(
        error.to_string().contains("turnwire-no-such-key"),
        "{error}"
    );

    let folder = std::env::temp_dir();
    let error = ApiKey::from_file(&folder).expect_err("a folder");
    let source = KeySource::File(folder);
    assert_eq!(
        error,
        ApiKeyError::Unreadable(source, ErrorKind::InvalidInput)
    );

    let large = write_file("large", &vec![b'k'; KEY_BYTES_MAX + 1]);
    let error = ApiKey::from_file(&large);
    std::fs::remove_file(&large).expect("removed");
    let source = KeySource::File(large);
    assert_eq!(error.expect_err("too long"), ApiKeyError::TooLong(source));
}

// G6
#[test]
fn debug_output_hides_the_key() {
    let key = variable("sk-secret").expect("a key");
    assert_eq!(
        format!("{key:?} {:?}", Some(&key)),
        "Secret(…) Some(Secret(…))"
    );
}
