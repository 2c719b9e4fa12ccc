//! What a server answered, as the model is given it: its structure if it has one, otherwise its
//! words; pictures, sounds and files as a line that says what they are.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::secrets::Secrets;
use crate::shelf::size;

/// Of what the model is given: an agent takes a result of 1 MiB, and what stands around it needs
/// room too.
const RESULT_BYTES_MAX: usize = (1 << 20) - 1_024;
/// Of the words of an error, which stand in the conversation for good.
const ERROR_CHARS_MAX: usize = 8_192;

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// A result.
    Good(Value),
    /// The tool's own error, in its own words.
    Error(String),
    /// A result that is more than a model is given at once.
    TooLarge,
}

/// What `result` is to a model, without `secrets`. They are taken out before anything is cut: the
/// beginning of a key would not be known again.
pub(crate) fn read(result: CallToolResult, secrets: &Secrets) -> Answer {
    if result.is_error == Some(true) {
        let words = words(&result.content);
        let words = match (words.is_empty(), &result.structured_content) {
            (true, Some(structure)) => secrets.hide_in(structure.clone()).to_string(),
            (true, None) => "The tool failed and does not say why.".to_owned(),
            (false, _) => secrets.hide(words),
        };
        return Answer::Error(words.chars().take(ERROR_CHARS_MAX).collect());
    }
    if let Some(structure) = result.structured_content.filter(|value| !value.is_null()) {
        return match size(&structure) > RESULT_BYTES_MAX {
            true => Answer::TooLarge,
            false => Answer::Good(secrets.hide_in(structure)),
        };
    }
    let words = words(&result.content);
    match size(&Value::from(words.as_str())) > RESULT_BYTES_MAX {
        true => Answer::TooLarge,
        false => Answer::Good(Value::from(secrets.hide(words))),
    }
}

/// All blocks as text, one below the other.
pub(crate) fn words(content: &[ContentBlock]) -> String {
    let lines: Vec<String> = content.iter().map(line).collect();
    lines.join("\n")
}

fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => thing("a picture", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => thing("a sound", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[a text from {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => format!("{} from {uri}", thing("a file", mime_type.as_deref(), blob)),
            _ => "[a resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => match &link.description {
            Some(about) => format!("[a link to {}: {} ({about})]", link.uri, link.name),
            None => format!("[a link to {}: {}]", link.uri, link.name),
        },
        _ => "[something that cannot be shown]".to_owned(),
    }
}

/// What a piece of base64 is.
fn thing(what: &str, mime_type: Option<&str>, base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    let kind = mime_type.unwrap_or("of no known kind");
    format!("[{what}, {kind}, about {bytes} bytes]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).expect("a result")
    }

    fn read(result: CallToolResult) -> Answer {
        super::read(result, &Secrets::default())
    }

    #[test]
    fn texts_are_joined_and_the_rest_is_described() {
        let read = read(result(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "demo://1", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "demo://2", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "demo://3", "name": "third"},
        ]})));
        let expected = "one\n[a picture, image/png, about 6 bytes]\n\
             [a sound, audio/wav, about 3 bytes]\n[a text from demo://1]\ninside\n\
             [a file, of no known kind, about 3 bytes] from demo://2\n\
             [a link to demo://3: third]";
        assert_eq!(read, Answer::Good(json!(expected)));
    }

    #[test]
    fn structure_is_preferred_to_words() {
        let both =
            json!({"content": [{"type": "text", "text": "20"}], "structuredContent": {"t": 20}});
        assert_eq!(read(result(both)), Answer::Good(json!({"t": 20})));
        let none = json!({"content": [{"type": "text", "text": "20"}], "structuredContent": null});
        assert_eq!(read(result(none)), Answer::Good(json!("20")));
        assert_eq!(
            read(result(json!({"content": []}))),
            Answer::Good(json!(""))
        );
    }

    #[test]
    fn an_error_is_the_servers_words_and_not_too_many() {
        let long = "x".repeat(ERROR_CHARS_MAX + 5);
        let wrong = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let Answer::Error(words) = read(result(wrong)) else {
            panic!("no error");
        };
        assert_eq!(words.len(), ERROR_CHARS_MAX);
        let mute = read(result(json!({"content": [], "isError": true})));
        assert!(matches!(mute, Answer::Error(words) if !words.is_empty()));
    }

    #[test]
    fn g6_a_key_where_an_error_is_cut_leaves_nothing_of_itself() {
        let secrets = Secrets::of_env(&[("API_KEY".to_owned(), "sk-at-the-cut".to_owned())]);
        let before = "x".repeat(ERROR_CHARS_MAX - 6);
        let long = format!("{before}sk-at-the-cut and more");
        let said = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let expected = format!("{before}*** an");
        assert_eq!(super::read(result(said), &secrets), Answer::Error(expected));
        // Eight bytes of it are `{"why":"`.
        let structure = json!({"why": &long[8..]});
        let said = json!({"content": [], "structuredContent": structure, "isError": true});
        let expected = format!("{{\"why\":\"{}*** an", &before[8..]);
        assert_eq!(super::read(result(said), &secrets), Answer::Error(expected));
    }

    #[test]
    fn what_is_too_large_is_not_given() {
        let large = "x".repeat(RESULT_BYTES_MAX);
        let text = json!({"content": [{"type": "text", "text": large}]});
        assert_eq!(read(result(text)), Answer::TooLarge);
        let structure = json!({"content": [], "structuredContent": {"a": large}});
        assert_eq!(read(result(structure)), Answer::TooLarge);
    }
}
