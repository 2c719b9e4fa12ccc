//! The config file: sections of keys with single values. A section or key that does not exist is
//! an error at its place, never ignored.

use std::fmt;
use std::path::Path;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{MessageFormatter as _, Spanned};

use super::origin::{Error, Origin};
use super::section::{Table, Values};

struct Setting {
    section: &'static str,
    key: &'static str,
    value: Spanned<Value>,
}

/// Reads `text`, the content of the file at `path`, into `values`.
pub(in crate::config) fn read(
    path: &Path,
    text: &str,
    tables: &'static [Table],
    values: &mut Values,
) -> Result<(), Error> {
    let place = |line, column| Origin::File {
        path: path.to_owned(),
        line,
        column,
    };
    let mut settings = Vec::new();
    serde_saphyr::with_deserializer_from_str(text, |yaml| {
        Sections(tables, &mut settings).deserialize(yaml)
    })
    .map_err(|error| {
        let error = error.without_snippet();
        let at = error.location();
        Error::File {
            at: at.map_or(place(1, 1), |at| place(at.line(), at.column())),
            message: serde_saphyr::UserMessageFormatter
                .format_message(error)
                .into_owned(),
        }
    })?;
    for Setting {
        section,
        key,
        value,
    } in settings
    {
        let at = place(value.referenced.line(), value.referenced.column());
        let text = match value.value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Array(_) | Value::Object(_) => {
                let message = format!("{section}.{key} must be a single value");
                return Err(Error::File { at, message });
            }
        };
        values.say(section, key, text, at);
    }
    Ok(())
}

/// A key out of a known list, so that one that is not is refused where it stands.
struct OneOf<'a> {
    what: &'a str,
    names: Vec<&'static str>,
}

impl<'de> DeserializeSeed<'de> for OneOf<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = self.names.iter().copied().find(|known| *known == name);
        found.ok_or_else(|| {
            let known = self.names.join(", ");
            de::Error::custom(format!(
                "unknown {} {name:?}; there are: {known}",
                self.what
            ))
        })
    }
}

struct Sections<'a>(&'static [Table], &'a mut Vec<Setting>);

impl<'de> DeserializeSeed<'de> for Sections<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sections<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sections of keys")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let names = || self.0.iter().map(|table| table.name).collect();
        while let Some(name) = map.next_key_seed(OneOf {
            what: "section",
            names: names(),
        })? {
            for table in self.0.iter().filter(|table| table.name == name) {
                map.next_value_seed(Keys(*table, self.1))?;
            }
        }
        Ok(())
    }
}

struct Keys<'a>(Table, &'a mut Vec<Setting>);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys of section {}", self.0.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let what = format!("key in section {}:", self.0.name);
        while let Some(key) = map.next_key_seed(OneOf {
            what: &what,
            names: self.0.keys.to_vec(),
        })? {
            self.1.push(Setting {
                section: self.0.name,
                key,
                value: map.next_value()?,
            });
        }
        Ok(())
    }
}
