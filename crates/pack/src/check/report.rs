//! Findings about one file, and the questions that several checks ask of a field. Missing fields,
//! bounds, forms and words are reported by the schema of the file before.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde::Serialize;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Value, json};

use crate::finding::{Findings, KnownNames};
use crate::source::form::ID_PATTERN;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The longest time that a data service may take for one call (D-31): ten seconds.
pub(crate) const CALL_MS_MAX: u64 = 10_000;

/// A file and the [`Findings`] that those about it are added to.
pub(crate) struct FileReport<'a> {
    pub(crate) file: &'a str,
    pub(crate) findings: &'a mut Findings,
}

impl<'a> FileReport<'a> {
    pub(crate) fn new(file: &'a str, findings: &'a mut Findings) -> Self {
        Self { file, findings }
    }

    pub(crate) fn error(
        &mut self,
        position: TextPosition,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.findings.error(self.file, position, message, instead);
    }

    pub(crate) fn warning(
        &mut self,
        position: TextPosition,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.findings.warning(self.file, position, message, instead);
    }

    /// Reports a name that is not among the [`KnownNames`]; `noun` says what it should name.
    pub(crate) fn unknown(&mut self, name: &Located<String>, noun: &str, known: &KnownNames) {
        self.findings.unknown(self.file, name, noun, known);
    }

    /// As [`Self::unknown`], for a status id that is emitted.
    pub(crate) fn unregistered(&mut self, id: &Located<String>, known: &KnownNames) {
        if self.findings.unknown(self.file, id, "status id", known) {
            self.findings.mark_unregistered();
        }
    }

    /// A field that other fields of its entry make required; `example` is what to write.
    pub(crate) fn require<'f, T>(
        &mut self,
        field: &'f Option<Located<T>>,
        name: &str,
        entry: TextPosition,
        example: &str,
    ) -> Option<&'f Located<T>> {
        if field.is_none() {
            let message = format!("`{name}` is missing");
            self.error(entry, message, format!("`{example}`"));
        }
        field.as_ref()
    }

    /// Reports each name that is twice in a list.
    pub(crate) fn check_unique<'f>(
        &mut self,
        names: impl IntoIterator<Item = &'f Located<String>>,
        list: &str,
    ) {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if seen.contains(&name.value.as_str()) {
                let message = format!("`{}` stands twice in `{list}`", one_line(&name.value));
                self.error(name.position, message, "it once");
            }
            seen.push(&name.value);
        }
    }
}

/// The value of a field, or the default where it is left out.
pub(crate) fn value_or<T: Copy>(field: &Option<Located<T>>, default: T) -> T {
    field.as_ref().map_or(default, |field| field.value)
}

/// The value of a field; `None` where it is left out.
pub(crate) fn value_of<T: Clone>(field: &Option<Located<T>>) -> Option<T> {
    field.as_ref().map(|field| field.value.clone())
}

/// The text of a field; empty where it is left out.
pub(crate) fn text_of(field: &Option<Located<String>>) -> String {
    value_of(field).unwrap_or_default()
}

/// The value that a word stands for; `None` if it is left out, or if the schema refused it.
pub(crate) fn word<T: DeserializeOwned>(field: &Option<Located<String>>) -> Option<T> {
    let word: StrDeserializer<'_, Error> = field.as_ref()?.value.as_str().into_deserializer();
    T::deserialize(word).ok()
}

/// The word that stands for a value.
pub(crate) fn word_of<T: Serialize>(value: T) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// True if `text` is an id (S2-006).
pub(crate) fn is_id(text: &str) -> bool {
    static ID: LazyLock<Validator> = LazyLock::new(|| {
        let schema = json!({ "pattern": ID_PATTERN });
        jsonschema::validator_for(&schema).expect("the pattern of ids is valid")
    });
    ID.is_valid(&Value::from(text))
}

/// The values of a list.
pub(crate) fn values(list: &[Located<String>]) -> Vec<String> {
    list.iter().map(|item| item.value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // S2-006, S2-082
    #[test]
    fn id_is_lower_case_and_at_most_48_characters() {
        for good in ["a", "shop", "a1_b", &"x".repeat(48)] {
            assert!(is_id(good), "{good}");
        }
        let long = "x".repeat(49);
        for bad in [
            "",
            "Shop",
            "1shop",
            "_shop",
            "e-receipts",
            "a b",
            "é",
            &long,
        ] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
