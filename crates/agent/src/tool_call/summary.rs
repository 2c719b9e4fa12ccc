//! A value in a few characters, for events that only tell what it was about.

use serde_json::Value;

/// `value` in at most `chars_max` characters: text as it is, anything else as JSON; what was cut
/// ends in `…`.
pub(crate) fn summary(value: &Value, chars_max: usize) -> String {
    match value {
        Value::String(text) => shorten(text, chars_max),
        other => shorten(&other.to_string(), chars_max),
    }
}

fn shorten(text: &str, chars_max: usize) -> String {
    if text.len() <= chars_max || text.chars().nth(chars_max).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(chars_max.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_whole_and_what_does_not_is_cut_at_a_character() {
        assert_eq!(summary(&json!("äöüß"), 4), "äöüß");
        assert_eq!(summary(&json!("äöüßx"), 4), "äöü…");
        assert_eq!(summary(&json!({"a": [1, 2]}), 11), r#"{"a":[1,2]}"#);
        assert_eq!(summary(&json!({"a": [1, 2]}), 10), r#"{"a":[1,2…"#);
        assert_eq!(summary(&json!(""), 0), "");
    }
}
