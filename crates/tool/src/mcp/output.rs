//! The result of a call as the model gets it: its structured content, or else its text, with a line
//! in place of each image, sound and file.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::json_text::{compact_json, value_or_text};
use crate::secrets::Secrets;
use crate::tool::json_bytes;

/// The limit of a result: an agent accepts 1 MiB, including the text around the result.
const RESULT_BYTES_MAX: usize = (1 << 20) - 1_024;
/// The limit of an error, which stays in the conversation.
const ERROR_CHARS_MAX: usize = 8_192;

/// The structured content of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StructuredContent {
    /// JSON without spaces, in its shortest notation.
    Json(String),
    /// It exceeds [`RESULT_BYTES_MAX`], or has a string that is not text.
    TooLarge,
}

/// The result of a call, within limits: texts only, no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// The content with a line for each block, cut after the block that exceeds
    /// [`RESULT_BYTES_MAX`].
    pub(crate) text: String,
    pub(crate) structured: Option<StructuredContent>,
    pub(crate) is_error: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultShape<'a> {
    result_type: Option<String>,
    content: Option<ContentText>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<IgnoredAny>,
}

impl CallResult {
    /// Reads the result of a request; `None` if it is not the result of a call.
    pub(crate) fn read(result: &str) -> Option<Self> {
        let shape: ResultShape<'_> = serde_json::from_str(result).ok()?;
        let is_complete = shape.result_type.is_none_or(|kind| kind == "complete");
        let has_field = shape.content.is_some()
            || shape.structured_content.is_some()
            || shape.is_error.is_some()
            || shape.meta.is_some();
        if !is_complete || !has_field {
            return None;
        }
        let structured = shape.structured_content.map(|structured| {
            let json = compact_json(structured.get(), RESULT_BYTES_MAX, &Secrets::default());
            json.map_or(StructuredContent::TooLarge, StructuredContent::Json)
        });
        Some(Self {
            text: shape.content.map(|content| content.0).unwrap_or_default(),
            structured,
            is_error: shape.is_error == Some(true),
        })
    }
}

/// What the model gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallOutput {
    Result(Value),
    /// The error text of the tool.
    Error(String),
    /// The result exceeds [`RESULT_BYTES_MAX`].
    TooLarge,
}

impl CallOutput {
    /// Reads `result` and removes `secrets`. They are removed before anything is cut, because the
    /// beginning of a key would not be recognised.
    pub(crate) fn new(result: CallResult, secrets: &Secrets) -> Self {
        let hide = |json: String| compact_json(&json, usize::MAX, secrets).unwrap_or_default();
        if result.is_error {
            let text = match (result.text.is_empty(), result.structured) {
                (true, Some(StructuredContent::Json(json))) => hide(json),
                (true, Some(StructuredContent::TooLarge)) => {
                    "The tool failed, and its error is too large to be read.".to_owned()
                }
                (true, None) => "The tool failed without an error message.".to_owned(),
                (false, _) => secrets.hide(result.text),
            };
            return Self::Error(text.chars().take(ERROR_CHARS_MAX).collect());
        }
        let value = match result.structured {
            Some(StructuredContent::Json(json)) => value_or_text(hide(json)),
            Some(StructuredContent::TooLarge) => return Self::TooLarge,
            None if result.text.len() > RESULT_BYTES_MAX => return Self::TooLarge,
            None => Value::String(secrets.hide(result.text)),
        };
        match json_bytes(&value) > RESULT_BYTES_MAX {
            true => Self::TooLarge,
            false => Self::Result(value),
        }
    }
}

/// All blocks as text, one per line, up to the block that exceeds [`RESULT_BYTES_MAX`].
struct ContentText(String);

impl<'de> Deserialize<'de> for ContentText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = ContentText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of content blocks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<ContentText, A::Error> {
                let mut text = String::new();
                let mut is_first = true;
                while text.len() <= RESULT_BYTES_MAX {
                    let Some(block) = blocks.next_element::<BlockShape<'_>>()? else {
                        return Ok(ContentText(text));
                    };
                    if !std::mem::take(&mut is_first) {
                        text.push('\n');
                    }
                    text.push_str(&block.line().map_err(serde::de::Error::custom)?);
                }
                while blocks.next_element::<IgnoredAny>()?.is_some() {}
                Ok(ContentText(text))
            }
        }
        deserializer.deserialize_seq(ContentVisitor)
    }
}

/// The fields of all kinds of blocks, and of the resource in one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockShape<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    /// Base64, of which only the length counts.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    blob: Option<&'a RawValue>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
}

impl BlockShape<'_> {
    fn line(self) -> Result<String, &'static str> {
        let mime_type = self.mime_type.as_deref();
        let line = match self.kind.as_deref() {
            Some("text") => self.text,
            Some("image") => self.data.map(|data| binary("an image", mime_type, data)),
            Some("audio") => self.data.map(|data| binary("a sound", mime_type, data)),
            Some("resource") => match self.resource {
                Some(resource) => Some(resource_line(resource)?),
                None => None,
            },
            Some("resource_link") => {
                self.uri
                    .zip(self.name)
                    .map(|(uri, name)| match self.description {
                        Some(description) => format!("[a link to {uri}: {name} ({description})]"),
                        None => format!("[a link to {uri}: {name}]"),
                    })
            }
            Some(_) => Some("[content that cannot be shown]".to_owned()),
            None => None,
        };
        line.ok_or("a block lacks a field")
    }
}

fn resource_line(resource: &RawValue) -> Result<String, &'static str> {
    let resource: BlockShape<'_> =
        serde_json::from_str(resource.get()).map_err(|_| "a resource is not valid")?;
    let uri = resource.uri.ok_or("a resource lacks its address")?;
    Ok(match (resource.text, resource.blob) {
        (Some(text), _) => format!("[a text from {uri}]\n{text}"),
        (None, Some(blob)) => {
            let file = binary("a file", resource.mime_type.as_deref(), blob);
            format!("{file} from {uri}")
        }
        (None, None) => "[a resource]".to_owned(),
    })
}

/// A line in place of base64 content.
fn binary(noun: &str, mime_type: Option<&str>, base64: &RawValue) -> String {
    // Without the quotes.
    let bytes = base64.get().len().saturating_sub(2) / 4 * 3;
    let mime_type = mime_type.unwrap_or("of unknown type");
    format!("[{noun}, {mime_type}, about {bytes} bytes]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(value: Value) -> CallResult {
        CallResult::read(&value.to_string()).expect("a result")
    }

    fn output(result: CallResult) -> CallOutput {
        CallOutput::new(result, &Secrets::default())
    }

    #[test]
    fn texts_are_joined_and_other_content_is_described() {
        let output = output(result(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "demo://1", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "demo://2", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "demo://3", "name": "third"},
        ]})));
        let expected = "one\n[an image, image/png, about 6 bytes]\n\
             [a sound, audio/wav, about 3 bytes]\n[a text from demo://1]\ninside\n\
             [a file, of unknown type, about 3 bytes] from demo://2\n\
             [a link to demo://3: third]";
        assert_eq!(output, CallOutput::Result(json!(expected)));
    }

    #[test]
    fn structured_content_is_preferred_to_text() {
        let both =
            json!({"content": [{"type": "text", "text": "20"}], "structuredContent": {"t": 20}});
        assert_eq!(output(result(both)), CallOutput::Result(json!({"t": 20})));
        let null = json!({"content": [{"type": "text", "text": "20"}], "structuredContent": null});
        assert_eq!(output(result(null)), CallOutput::Result(json!("20")));
        assert_eq!(
            output(result(json!({"content": []}))),
            CallOutput::Result(json!(""))
        );
    }

    #[test]
    fn error_text_is_cut_to_its_limit() {
        let long = "x".repeat(ERROR_CHARS_MAX + 5);
        let error = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let CallOutput::Error(text) = output(result(error)) else {
            panic!("not an error");
        };
        assert_eq!(text.len(), ERROR_CHARS_MAX);
        let empty = output(result(json!({"content": [], "isError": true})));
        assert!(matches!(empty, CallOutput::Error(text) if !text.is_empty()));
    }

    // G6
    #[test]
    fn key_at_the_cut_of_an_error_is_removed_whole() {
        let secrets = Secrets::of_env(&[("API_KEY".to_owned(), "sk-at-the-cut".to_owned())]);
        let before = "x".repeat(ERROR_CHARS_MAX - 6);
        let long = format!("{before}sk-at-the-cut and more");
        let error = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let expected = format!("{before}*** an");
        assert_eq!(
            CallOutput::new(result(error), &secrets),
            CallOutput::Error(expected)
        );
        // The JSON adds eight bytes: `{"why":"`.
        let structured = json!({"why": &long[8..]});
        let error = json!({"content": [], "structuredContent": structured, "isError": true});
        let expected = format!("{{\"why\":\"{}*** an", &before[8..]);
        assert_eq!(
            CallOutput::new(result(error), &secrets),
            CallOutput::Error(expected)
        );
    }

    #[test]
    fn result_beyond_the_limit_is_too_large() {
        let large = "x".repeat(RESULT_BYTES_MAX);
        let text = json!({"content": [{"type": "text", "text": large}]});
        assert_eq!(output(result(text)), CallOutput::TooLarge);
        let structured = json!({"content": [], "structuredContent": {"a": large}});
        assert_eq!(output(result(structured)), CallOutput::TooLarge);
    }

    #[test]
    fn costly_content_is_read_without_values() {
        let maps = format!("[{}0]", r#"{"":0},"#.repeat(1_000_000));
        let structured = format!(r#"{{"content":[],"structuredContent":{{"a":{maps}}}}}"#);
        let large = CallResult::read(&structured).expect("a result");
        assert_eq!(large.structured, Some(StructuredContent::TooLarge));
        assert_eq!(output(large), CallOutput::TooLarge);
        // Below the limit: the model gets the same text.
        let maps = format!("[{}0]", r#"{"":0},"#.repeat(50_000));
        let structured = format!(r#"{{"structuredContent":{maps}}}"#);
        let small = CallResult::read(&structured).expect("a result");
        assert_eq!(output(small), CallOutput::Result(json!(maps)));
        let meta = format!(
            r#"{{"content":[{{"type":"text","text":"a","_meta":{maps}}}],"_meta":{maps}}}"#
        );
        let meta = CallResult::read(&meta).expect("a result");
        assert_eq!(output(meta), CallOutput::Result(json!("a")));
        assert_eq!(CallResult::read(&format!(r#"{{"content":{maps}}}"#)), None);
    }

    #[test]
    fn large_image_is_described() {
        let data = "A".repeat(4 << 20);
        let image = json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]});
        let expected = "[an image, image/png, about 3145728 bytes]";
        assert_eq!(output(result(image)), CallOutput::Result(json!(expected)));
    }

    #[test]
    fn other_results_are_not_results_of_a_call() {
        for other in [
            json!({}),
            json!("text"),
            json!({"tools": []}),
            json!({"resultType": "input_required", "content": []}),
            json!({"content": [{"text": "no kind"}]}),
            json!({"content": [{"type": "image"}]}),
        ] {
            assert_eq!(CallResult::read(&other.to_string()), None, "{other}");
        }
    }
}
