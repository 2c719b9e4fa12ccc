//! Finds the end of a JSON object whose text comes in pieces: the arguments of a call are complete when
//! their object is.

/// The state of the scan. Only nesting and strings are followed; the object need not be valid.
#[derive(Debug, Default)]
pub(super) struct ObjectScan {
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    has_object: bool,
    /// True if something stands beside the object.
    has_more: bool,
}

impl ObjectScan {
    /// True if the text is one object, from its first brace to its last.
    pub(super) fn is_complete(&self) -> bool {
        self.has_object && self.depth == 0 && !self.has_more
    }

    /// Adds the next piece of the text.
    pub(super) fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.is_in_string {
                self.push_in_string(byte);
            } else if self.depth > 0 {
                self.push_inside(byte);
            } else if byte == b'{' && !self.has_object {
                (self.has_object, self.depth) = (true, 1);
            } else if !byte.is_ascii_whitespace() {
                self.has_more = true;
            }
        }
    }

    fn push_in_string(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_string = false,
            _ => {}
        }
    }

    fn push_inside(&mut self, byte: u8) {
        match byte {
            b'"' => self.is_in_string = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_is_complete_at_its_last_brace() {
        for (text, expected) in [
            ("", false),
            (" {", false),
            ("{}", true),
            (r#" {"a": [1, {"b": "}"}]} "#, true),
            (r#"{"a": "\\\"}"#, false),
            (r#"{"a": "\\\\"}"#, true),
            ("{}{}", false),
            ("{} x", false),
            ("[]", false),
            ("null", false),
        ] {
            for split in 0..=text.len() {
                let mut scan = ObjectScan::default();
                scan.push(&text[..split]);
                scan.push(&text[split..]);
                assert_eq!(scan.is_complete(), expected, "{text} at {split}");
            }
        }
    }
}
