//! Tests of [`Secrets`]: which texts are removed from results, in which notations.

use serde_json::json;

use super::*;

fn secrets(values: &[&str]) -> Secrets {
    let mut keys = SecretCollector::default();
    for value in values {
        keys.add_value(value);
    }
    keys.build()
}

fn hidden(secrets: &Secrets, text: &str) -> String {
    secrets.hide(text.to_owned())
}

#[test]
fn key_that_ends_with_a_quote_is_hidden_whole() {
    let secrets = secrets(&["\"quoted-key\""]);
    assert_eq!(hidden(&secrets, "a \"quoted-key\" b"), "a *** b");
    let json = json!({"k": "\"quoted-key\""}).to_string();
    assert_eq!(hidden(&secrets, &json), r#"{"k":"***"}"#);
}

#[test]
fn overlapping_and_adjacent_keys_leave_no_part() {
    let secrets = secrets(&["12345678abcd", "abcdWXYZ99", "12345678abcdWX"]);
    assert_eq!(hidden(&secrets, "<12345678abcdWXYZ99>"), "<***>");
    assert_eq!(hidden(&secrets, "<abcdWXYZ99abcdWXYZ99>"), "<******>");
}

#[test]
fn key_is_found_across_line_breaks() {
    let secrets = secrets(&["sk-0123456789"]);
    assert_eq!(hidden(&secrets, "a\nsk-01\r\n2345\n\n6789\nb"), "a\n***\nb");
    assert_eq!(hidden(&secrets, "sk-0123456789\nb\n"), "***\nb\n");
    assert_eq!(hidden(&secrets, "sk-0123\n x 456789"), "sk-0123\n x 456789");
}

#[test]
fn variables_are_keys_by_the_words_of_their_name() {
    let is_key = |name: &str| {
        let mut keys = SecretCollector::default();
        keys.add_variable(name, "a-long-value");
        hidden(&keys.build(), "a-long-value") == HIDDEN
    };
    for name in [
        "ANTHROPIC_API_KEY",
        "github_token",
        "DB_PASSWORD",
        "MYSQL_PWD",
    ] {
        assert!(is_key(name), "{name}");
    }
    for name in [
        "PWD",
        "OLDPWD",
        "XDG_SESSION_TYPE",
        "SSH_AUTH_SOCK",
        "KEYMAP",
        "PATH",
    ] {
        assert!(!is_key(name), "{name}");
    }
}

#[test]
fn password_of_a_url_in_a_variable_is_a_key() {
    let mut keys = SecretCollector::default();
    keys.add_variable(
        "DATABASE_URL",
        "postgres://app:s3cret%40word@db.example/app",
    );
    let secrets = keys.build();
    assert_eq!(
        hidden(&secrets, "<s3cret%40word> <s3cret@word>"),
        "<***> <***>"
    );
    assert_eq!(hidden(&secrets, "db.example"), "db.example");
}

#[test]
fn union_has_the_keys_of_both() {
    let (one, two) = (secrets(&["first-key-1"]), secrets(&["second-key"]));
    let both = one.and(&two);
    assert_eq!(hidden(&both, "first-key-1 second-key"), "*** ***");
    assert_eq!(hidden(&Secrets::default().and(&one), "first-key-1"), "***");
    assert_eq!(hidden(&one.and(&Secrets::default()), "first-key-1"), "***");
}
