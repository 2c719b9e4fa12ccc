//! One file under the eye: the questions that every check asks of a field. Each answers with a
//! value that can be worked with, and leaves a finding where the file did not give it.

use crate::finding::{Finding, Findings, Known, shown};
use crate::nearest::{listed, nearest};
use crate::place::{At, Place};

/// The longest time anything of a pack may ask for: ten minutes.
pub(crate) const TIMEOUT_MS_MAX: u64 = 600_000;
/// The longest time a service is waited for (D-31): ten seconds.
pub(crate) const CALL_MS_MAX: u64 = 10_000;
/// The largest amount of money that anything of a pack may name: a million USD.
const USD_MAX: f64 = 1e6;
/// Characters of an id (S2-006).
const ID_MAX: usize = 48;

/// A file and where findings about it go.
pub(crate) struct Page<'a> {
    pub(crate) file: &'a str,
    pub(crate) found: &'a mut Findings,
}

impl Page<'_> {
    pub(crate) fn error(&mut self, place: Place, what: impl Into<String>) -> &mut Finding {
        self.found.error(self.file, place, what)
    }

    pub(crate) fn warning(&mut self, place: Place, what: impl Into<String>) -> &mut Finding {
        self.found.warning(self.file, place, what)
    }

    pub(crate) fn unknown(&mut self, name: &At<String>, what: &str, known: &Known) {
        self.found.unknown(self.file, name, what, known);
    }

    /// As `unknown`, of a status id that somebody emits.
    pub(crate) fn unregistered(&mut self, id: &At<String>, known: &Known) {
        if let Some(finding) = self.found.unknown(self.file, id, "status id", known) {
            finding.emitted();
        }
    }

    /// A field that must be there; `home` is where to say so, `example` what to write.
    pub(crate) fn needed<'f, T>(
        &mut self,
        field: &'f Option<At<T>>,
        name: &str,
        home: Place,
        example: &str,
    ) -> Option<&'f At<T>> {
        if field.is_none() {
            self.error(home, format!("`{name}` is missing"))
                .write(format!("`{example}`"));
        }
        field.as_ref()
    }

    /// Text that must be there and say something.
    pub(crate) fn text(
        &mut self,
        field: &Option<At<String>>,
        name: &str,
        home: Place,
        example: &str,
    ) -> String {
        let Some(text) = self.needed(field, name, home, example) else {
            return String::new();
        };
        if text.value.trim().is_empty() {
            self.error(text.place, format!("`{name}` is empty"))
                .write(format!("`{example}`"));
        }
        text.value.clone()
    }

    /// An id that must be there.
    pub(crate) fn id(
        &mut self,
        field: &Option<At<String>>,
        name: &str,
        home: Place,
        example: &str,
    ) -> String {
        let Some(id) = self.needed(field, name, home, example) else {
            return String::new();
        };
        self.id_form(id, name);
        id.value.clone()
    }

    /// Whether a name has the form of an id.
    pub(crate) fn id_form(&mut self, id: &At<String>, name: &str) {
        if is_id(&id.value) {
            return;
        }
        let what = format!("`{}` is not a valid {name}", shown(&id.value));
        let rule =
            format!("a to z, 0 to 9 and _, beginning with a letter, at most {ID_MAX} characters");
        match repaired(&id.value) {
            Some(repaired) => self
                .error(id.place, what)
                .write(format!("`{repaired}` ({rule})")),
            None => self.error(id.place, what).write(rule),
        }
    }

    /// A number within bounds.
    pub(crate) fn number(
        &mut self,
        field: &Option<At<u64>>,
        name: &str,
        (least, most): (u64, u64),
        default: u64,
    ) -> u64 {
        let Some(number) = field else {
            return default;
        };
        if !(least..=most).contains(&number.value) {
            self.error(number.place, format!("`{name}` is {}", number.value))
                .write(format!("a number from {least} to {most}"));
        }
        number.value
    }

    /// An amount of money; none if it cannot be one.
    pub(crate) fn usd(&mut self, usd: &At<f64>, name: &str) -> Option<f64> {
        if (0.0..=USD_MAX).contains(&usd.value) {
            return Some(usd.value);
        }
        self.error(usd.place, format!("`{name}` is {}", usd.value))
            .write(format!("a number of USD from 0 to {USD_MAX}"));
        None
    }

    /// One of a few words, where one is written.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        word: &At<String>,
        name: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let known = choices.iter().find(|(choice, _)| *choice == word.value);
        if known.is_none() {
            let names = || choices.iter().map(|(choice, _)| *choice);
            let written = shown(&word.value);
            match nearest(&word.value, names()) {
                Some(meant) => {
                    let what = format!("unknown {name} `{written}`, did you mean `{meant}`?");
                    self.error(word.place, what);
                }
                None => self
                    .error(word.place, format!("unknown {name} `{written}`"))
                    .write(match choices {
                        [(only, _)] => format!("`{only}`"),
                        _ => format!("one of {}", listed(names())),
                    }),
            }
        }
        known.map(|(_, value)| *value)
    }

    /// A list in which nothing stands twice.
    pub(crate) fn once<'f>(&mut self, names: impl IntoIterator<Item = &'f At<String>>, list: &str) {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if seen.contains(&name.value.as_str()) {
                let what = format!("`{}` stands twice in `{list}`", shown(&name.value));
                self.error(name.place, what).write("it once");
            }
            seen.push(&name.value);
        }
    }
}

/// Whether this is `[a-z][a-z0-9_]{0,47}`.
pub(crate) fn is_id(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && text.len() <= ID_MAX
}

/// The id that was probably meant.
fn repaired(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let repaired = lower.replace(['-', ' ', '.'], "_");
    is_id(&repaired).then_some(repaired)
}

/// The values of a list.
pub(crate) fn values(list: &[At<String>]) -> Vec<String> {
    list.iter().map(|item| item.value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_006_ids_have_one_form() {
        for good in ["a", "shop", "a1_b", &"x".repeat(48)] {
            assert!(is_id(good), "{good}");
        }
        for bad in [
            "",
            "Shop",
            "1shop",
            "_shop",
            "e-receipts",
            "a b",
            "é",
            &"x".repeat(49),
        ] {
            assert!(!is_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_near_miss_is_repaired() {
        assert_eq!(repaired("E-Receipts").as_deref(), Some("e_receipts"));
        assert_eq!(repaired("1shop"), None);
    }
}
