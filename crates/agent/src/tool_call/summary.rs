//! A JSON value in a few characters, for events that only hint at the value.

use serde_json::Value;

/// `value` in at most `chars_max` characters: a string as it is, anything else as JSON. A truncated
/// summary ends in `…`.
pub(crate) fn summary(value: &Value, chars_max: usize) -> String {
    match value {
        Value::String(text) => truncate(text, chars_max),
        other => truncate(&other.to_string(), chars_max),
    }
}

fn truncate(text: &str, chars_max: usize) -> String {
    if text.len() <= chars_max || text.chars().nth(chars_max).is_none() {
        return text.to_owned();
    }
    let start = text.chars().take(chars_max.saturating_sub(1));
    start.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_value_is_truncated_at_a_character() {
        assert_eq!(summary(&json!("äöüß"), 4), "äöüß");
        assert_eq!(summary(&json!("äöüßx"), 4), "äöü…");
        assert_eq!(summary(&json!({"a": [1, 2]}), 11), r#"{"a":[1,2]}"#);
        assert_eq!(summary(&json!({"a": [1, 2]}), 10), r#"{"a":[1,2…"#);
        assert_eq!(summary(&json!(""), 0), "");
    }
}
