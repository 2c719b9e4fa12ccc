//! JSON as text, rewritten token by token. A value of many small objects takes more than a hundred
//! times the memory of its text, so text of a server becomes a value only if
//! [`value_bytes_estimate`] allows it.

use serde_json::Value;

use crate::secrets::Secrets;

/// Memory of a [`Value`] beside its text: an object with a hash table and room for a few fields, an
/// array with room for a few items, and each further field or item.
const OBJECT_BYTES: usize = 512;
const ARRAY_BYTES: usize = 288;
const ITEM_BYTES: usize = 128;
/// The largest estimate for which [`value_or_text`] makes a value. An agent holds a result a few
/// times over.
const VALUE_BYTES_MAX: usize = 8 << 20;

/// A part of JSON text.
enum JsonToken<'a> {
    Space,
    /// A bracket, a brace, a comma or a colon.
    Mark(u8),
    /// The literal with its quotes and escapes.
    String(&'a str),
    /// A number, `true`, `false` or `null`.
    Word(&'a str),
}

/// The tokens of `json`, which is valid JSON.
fn tokens(json: &str) -> impl Iterator<Item = JsonToken<'_>> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let first = *rest.as_bytes().first()?;
        let length = match first {
            b'"' => string_bytes(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => 1,
            _ => rest
                .find(|c: char| "{}[],:\" \t\n\r".contains(c))
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(match first {
            b'"' => JsonToken::String(token),
            b' ' | b'\t' | b'\n' | b'\r' => JsonToken::Space,
            b'{' | b'}' | b'[' | b']' | b',' | b':' => JsonToken::Mark(first),
            _ => JsonToken::Word(token),
        })
    })
}

/// The length of the string that `text` begins with, with its quotes.
fn string_bytes(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// `json`, which is valid JSON, without spaces, with every string in its shortest notation, and
/// without `secrets`; a number that is a secret becomes a string. `None` if it has more than
/// `bytes_max` bytes then, or a string that is not text.
pub(crate) fn compact_json(json: &str, bytes_max: usize, secrets: &Secrets) -> Option<String> {
    let mut compact = String::new();
    for token in tokens(json) {
        match token {
            JsonToken::Space => {}
            JsonToken::Mark(mark) => compact.push(char::from(mark)),
            JsonToken::String(literal) => {
                let text: String = serde_json::from_str(literal).ok()?;
                compact.push_str(&serde_json::to_string(&secrets.hide(text)).ok()?);
            }
            JsonToken::Word(word) => {
                let hidden = secrets.hide(word.to_owned());
                match hidden == word {
                    true => compact.push_str(word),
                    false => compact.push_str(&serde_json::to_string(&hidden).ok()?),
                }
            }
        }
        if compact.len() > bytes_max {
            return None;
        }
    }
    Some(compact)
}

/// The value of `json`, or `json` as a text if the value would take too much memory or nests too
/// deep. A model gets the same text for both.
pub(crate) fn value_or_text(json: String) -> Value {
    let value = match value_bytes_estimate(&json) <= VALUE_BYTES_MAX {
        true => serde_json::from_str(&json).ok(),
        false => None,
    };
    value.unwrap_or(Value::String(json))
}

/// The memory that a [`Value`] of `json` takes, rounded up.
pub(crate) fn value_bytes_estimate(json: &str) -> usize {
    let bytes = tokens(json).map(|token| match token {
        JsonToken::Mark(b'{') => OBJECT_BYTES,
        JsonToken::Mark(b'[') => ARRAY_BYTES,
        JsonToken::Mark(b',') => ITEM_BYTES,
        JsonToken::String(literal) => literal.len() + 16,
        _ => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_compacted_and_bounded() {
        let json = " { \"a\\u0062\" : [ 1 , -2.50e3 ,\ttrue, null ] , \"q\\\"\\\\\" :\n\"\\/ü\" } ";
        let compact = r#"{"ab":[1,-2.50e3,true,null],"q\"\\":"/ü"}"#;
        let secrets = Secrets::default();
        let rewritten = compact_json(json, compact.len(), &secrets);
        assert_eq!(rewritten.as_deref(), Some(compact));
        assert_eq!(compact_json(json, compact.len() - 1, &secrets), None);
        assert_eq!(compact_json(r#""\ud800""#, 100, &secrets), None);
    }

    // G6
    #[test]
    fn keys_are_removed_in_any_notation() {
        let key = ("API_KEY".to_owned(), "sk-of-a-server".to_owned());
        let number = ("PIN_TOKEN".to_owned(), "1234567890".to_owned());
        let secrets = Secrets::of_env(&[key, number]);
        let json = r#"{"\u0073k-of-a-server": ["x sk-of-a-server", 1234567890]}"#;
        let hidden = compact_json(json, 100, &secrets);
        assert_eq!(hidden.as_deref(), Some(r#"{"***":["x ***","***"]}"#));
    }

    #[test]
    fn costly_value_stays_text() {
        let rows = vec![json!({"id": 1, "name": "a row"}); 1_000];
        assert!(value_or_text(json!(rows).to_string()).is_array());
        let maps = format!("[{}0]", r#"{"":0},"#.repeat(100_000));
        assert_eq!(value_or_text(maps.clone()), Value::String(maps));
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(value_or_text(deep.clone()), Value::String(deep));
    }
}
