//! The result of a call as the model gets it: its structured content, or else its text, with a line
//! in place of each image, sound and file.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::secrets::Secrets;
use crate::tool::json_bytes;

/// The limit of a result: an agent accepts 1 MiB, including the text around the result.
const RESULT_BYTES_MAX: usize = (1 << 20) - 1_024;
/// The limit of an error, which stays in the conversation.
const ERROR_CHARS_MAX: usize = 8_192;

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
    pub(crate) fn new(result: CallToolResult, secrets: &Secrets) -> Self {
        let text = text_of(&result.content);
        let structured = result.structured_content.filter(|value| !value.is_null());
        if result.is_error == Some(true) {
            let text = match (text.is_empty(), structured) {
                (true, Some(structured)) => secrets.hide_in(structured).to_string(),
                (true, None) => "The tool failed without an error message.".to_owned(),
                (false, _) => secrets.hide(text),
            };
            return Self::Error(text.chars().take(ERROR_CHARS_MAX).collect());
        }
        let value = structured.unwrap_or(Value::String(text));
        match json_bytes(&value) > RESULT_BYTES_MAX {
            true => Self::TooLarge,
            false => Self::Result(secrets.hide_in(value)),
        }
    }
}

/// All blocks as text, one per line.
pub(crate) fn text_of(content: &[ContentBlock]) -> String {
    let lines: Vec<String> = content.iter().map(line).collect();
    lines.join("\n")
}

fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("an image", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => binary("a sound", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[a text from {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => format!(
                "{} from {uri}",
                binary("a file", mime_type.as_deref(), blob)
            ),
            _ => "[a resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => match &link.description {
            Some(description) => {
                format!("[a link to {}: {} ({description})]", link.uri, link.name)
            }
            None => format!("[a link to {}: {}]", link.uri, link.name),
        },
        _ => "[content that cannot be shown]".to_owned(),
    }
}

/// A line in place of base64 content.
fn binary(noun: &str, mime_type: Option<&str>, base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    let mime_type = mime_type.unwrap_or("of unknown type");
    format!("[{noun}, {mime_type}, about {bytes} bytes]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).expect("a result")
    }

    fn output(result: CallToolResult) -> CallOutput {
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
}
