//! Text with positions for fields: `{name}` stands for a field of a tool's input. What is in braces
//! and could not be a name is text, so that programs can be given braces of their own.

/// A piece of such a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplatePart<'a> {
    /// Text as it is.
    Text(&'a str),
    /// The name of a field, without its braces.
    Field(&'a str),
}

/// The pieces of a text, in order; none of them is empty.
pub fn template_parts(text: &str) -> Vec<TemplatePart<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let inside = &text[open + 1..];
        let name = inside.find('}').map(|end| &inside[..end]);
        match name.filter(|name| is_field(name)) {
            Some(name) => {
                if start < open {
                    pieces.push(TemplatePart::Text(&text[start..open]));
                }
                pieces.push(TemplatePart::Field(name));
                at = open + name.len() + 2;
                start = at;
            }
            None => at = open + 1,
        }
    }
    if start < text.len() {
        pieces.push(TemplatePart::Text(&text[start..]));
    }
    pieces
}

/// Whether this can stand in path or query of an address as it is. An apostrophe is written
/// percent-encoded there by some and not by others.
pub fn is_plain_url_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&()*+,;=:@%/?".contains(c)
}

/// Whether this can be the name of a field.
fn is_field(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::TemplatePart::{Field, Text};
    use super::*;

    #[test]
    fn only_names_in_braces_are_fields() {
        let cases: [(&str, &[TemplatePart<'_>]); 9] = [
            ("", &[]),
            ("plain", &[Text("plain")]),
            ("{city}", &[Field("city")]),
            (
                "a{b}c{d-e}",
                &[Text("a"), Field("b"), Text("c"), Field("d-e")],
            ),
            ("{print $1}", &[Text("{print $1}")]),
            ("{} {", &[Text("{} {")]),
            ("{{a}}", &[Text("{"), Field("a"), Text("}")]),
            ("{é}{1}", &[Text("{é}{1}")]),
            ("ü{a}ü", &[Text("ü"), Field("a"), Text("ü")]),
        ];
        for (text, expected) in cases {
            assert_eq!(template_parts(text), expected, "{text}");
        }
    }
}
