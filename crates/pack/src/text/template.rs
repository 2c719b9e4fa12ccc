//! Templates: texts in which `{name}` stands for a field of a tool's input. Braces around anything
//! that is not a name are text, so that arguments of programs can have braces of their own.

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplatePart<'a> {
    /// Text that is used as it is.
    Text(&'a str),
    /// The name of a field, without its braces.
    Field(&'a str),
}

/// The parts of a template, in order; no part is empty.
pub fn template_parts(text: &str) -> Vec<TemplatePart<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let inside = &text[open + 1..];
        let name = inside.find('}').map(|end| &inside[..end]);
        match name.filter(|name| is_field(name)) {
            Some(name) => {
                if start < open {
                    parts.push(TemplatePart::Text(&text[start..open]));
                }
                parts.push(TemplatePart::Field(name));
                at = open + name.len() + 2;
                start = at;
            }
            None => at = open + 1,
        }
    }
    if start < text.len() {
        parts.push(TemplatePart::Text(&text[start..]));
    }
    parts
}

/// True if `c` needs no percent-encoding in path or query of an address. The apostrophe is not among
/// them: some implementations encode it and others do not.
pub fn is_plain_url_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&()*+,;=:@%/?".contains(c)
}

/// True if `name` can be the name of a field.
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
