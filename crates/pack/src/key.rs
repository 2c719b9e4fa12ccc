//! Keys: where a provider's is looked for, and what is said where there is none. A key is read when
//! the models are made and never stays in a pack; no message repeats one.

use std::io::Read as _;

use crate::finding::{Finding, shown};
use crate::pack::Pack;
use crate::provider::KeyRef;

/// Bytes of a key: far more than any vendor gives out.
const KEY_MAX: usize = 4_096;

/// Why there is no key. For the operator: it names variables and files, never what is in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// None of the variables is set.
    #[error("the variable {} is not set", named(.0))]
    Unset(Vec<String>),
    /// The file cannot be read.
    #[error("the key file `{}` cannot be read: {why}", shown(.path))]
    Unreadable {
        /// Its path.
        path: String,
        /// What the system said.
        why: String,
    },
    /// What is there cannot be a key.
    #[error("{place} {why}")]
    Unfit {
        /// The variable or the file.
        place: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

fn named(variables: &[String]) -> String {
    let quoted: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}

impl KeyRef {
    /// The key; none for a provider that wants none. `vars` answers for the environment.
    pub fn read(&self, vars: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, NoKey> {
        match self {
            Self::None => Ok(None),
            Self::Variables(names) => {
                let set = names.iter().find_map(|name| Some((name, vars(name)?)));
                let (name, key) = set.ok_or_else(|| NoKey::Unset(names.clone()))?;
                fit(&key, || format!("the variable `{name}`")).map(Some)
            }
            Self::File(path) => {
                let place = || format!("the key file `{}`", shown(path));
                fit(&text(path)?, place).map(Some)
            }
        }
    }
}

/// The text of a key file, as far as a key can go.
fn text(path: &str) -> Result<String, NoKey> {
    let unreadable = |why: String| NoKey::Unreadable {
        path: path.to_owned(),
        why,
    };
    let told = |error: std::io::Error| unreadable(error.to_string());
    // Asked before it is opened: to open a pipe is to wait for its writer.
    if !std::fs::metadata(path).map_err(told)?.is_file() {
        return Err(unreadable("it is not a file".to_owned()));
    }
    let file = std::fs::File::open(path).map_err(told)?;
    let mut bytes = Vec::new();
    file.take(KEY_MAX as u64 + 2)
        .read_to_end(&mut bytes)
        .map_err(told)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A key without the line end that editors put behind it.
fn fit(key: &str, place: impl Fn() -> String) -> Result<String, NoKey> {
    let key = key.trim();
    let why = if key.is_empty() {
        "is empty"
    } else if key.len() > KEY_MAX {
        "is too long for a key"
    } else if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        "has something in it that no key has: a space, a line end or a letter beyond ASCII"
    } else {
        return Ok(key.to_owned());
    };
    Err(NoKey::Unfit {
        place: place(),
        why,
    })
}

/// Looks for the key of every provider that is used: an error for each that has none, where its
/// key is written, or where it is used if it is a built-in one.
pub fn keys(pack: &Pack, vars: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for used in &pack.uses {
        let Some((name, provider)) = pack.providers.get_key_value(used.provider()) else {
            continue;
        };
        if seen.contains(&name.as_str()) {
            continue;
        }
        seen.push(name);
        let Err(none) = provider.key.read(vars) else {
            continue;
        };
        let what = format!("`{name}` has no key: {none}");
        let mut finding = match pack.key_places.get(name) {
            Some(place) => Finding::error("providers.yaml", place.line, place.column, what),
            None => Finding::error(&*used.file, used.line, used.column, what),
        };
        finding.instead = Some(cure(&none));
        findings.push(finding);
    }
    findings
}

fn cure(none: &NoKey) -> String {
    match none {
        NoKey::Unset(names) => match names.first() {
            Some(name) => format!("set {name} before the start, or another model"),
            None => "another model".to_owned(),
        },
        NoKey::Unreadable { .. } => "the path of a file with the key and nothing else".to_owned(),
        NoKey::Unfit { .. } => "the key there, and nothing else".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(name: &str) -> Option<String> {
        let value = match name {
            "GOOD" => "sk-1",
            "LINED" => " sk-2\n",
            "BLANK" => "  ",
            "TWO" => "sk 3",
            "LETTER" => "sk-ü",
            "LONG" => return Some("x".repeat(KEY_MAX + 1)),
            _ => return None,
        };
        Some(value.to_owned())
    }

    fn read(names: &[&str]) -> Result<Option<String>, String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let read = KeyRef::Variables(names).read(&vars);
        read.map_err(|none| none.to_string())
    }

    #[test]
    fn the_first_variable_that_is_set_has_the_key() {
        assert_eq!(KeyRef::None.read(&vars), Ok(None));
        assert_eq!(read(&["GOOD"]), Ok(Some("sk-1".into())));
        assert_eq!(read(&["NO", "LINED", "GOOD"]), Ok(Some("sk-2".into())));
        let none = "the variable `NO` or `NEITHER` is not set";
        assert_eq!(read(&["NO", "NEITHER"]), Err(none.into()));
    }

    #[test]
    fn what_no_header_can_carry_is_told_and_not_shown() {
        let odd =
            "has something in it that no key has: a space, a line end or a letter beyond ASCII";
        for (name, why) in [
            ("BLANK", "is empty"),
            ("TWO", odd),
            ("LETTER", odd),
            ("LONG", "is too long for a key"),
        ] {
            assert_eq!(read(&[name]), Err(format!("the variable `{name}` {why}")));
        }
    }

    #[test]
    fn a_key_file_holds_the_key_and_perhaps_a_line_end() {
        let dir = std::env::temp_dir().join(format!("turnwire-key-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let of = |path: &std::path::Path| KeyRef::File(path.display().to_string()).read(&vars);
        let file = dir.join("key");
        std::fs::write(&file, "sk-file\r\n").expect("a file");
        assert_eq!(of(&file), Ok(Some("sk-file".into())));
        std::fs::write(&file, "sk\nfile\n").expect("a file");
        assert!(matches!(of(&file), Err(NoKey::Unfit { .. })));
        std::fs::write(&file, "x".repeat(1 << 20)).expect("a file");
        assert!(matches!(of(&file), Err(NoKey::Unfit { .. })));
        assert!(matches!(of(&dir), Err(NoKey::Unreadable { .. })));
        std::fs::remove_dir_all(&dir).expect("removed");
        assert!(matches!(of(&file), Err(NoKey::Unreadable { .. })));
    }
}
