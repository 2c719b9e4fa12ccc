//! A section of the settings: a struct of plain values, declared once with defaults, bounds and
//! reasons, and read from [`SectionValues`].

use std::collections::HashMap;

use super::origin::{ConfigError, SettingOrigin};

/// A section's name and keys.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct SectionTable {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) keys: &'static [&'static str],
}

/// A value in force, as `turnwire config show` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// The name of its section.
    pub section: &'static str,
    /// The key within the section.
    pub key: &'static str,
    /// The value, as it would be written.
    pub value: String,
    /// Where it comes from.
    pub origin: SettingOrigin,
    /// The purpose of the setting and the reason for its default.
    pub help: &'static str,
}

/// The values that the sources give, and the settings read from them.
#[derive(Debug, Default)]
pub(in crate::config) struct SectionValues {
    given: HashMap<(&'static str, &'static str), (String, SettingOrigin)>,
    pub(in crate::config) entries: Vec<EffectiveSetting>,
}

impl SectionValues {
    /// Stores a value; it replaces an earlier one of the same key.
    pub(in crate::config) fn set(
        &mut self,
        section: &'static str,
        key: &'static str,
        text: String,
        origin: SettingOrigin,
    ) {
        self.given.insert((section, key), (text, origin));
    }

    /// Reads a key, and adds the value in force to [`entries`](Self::entries).
    pub(in crate::config) fn take<T>(
        &mut self,
        section: &'static str,
        key: &'static str,
        default: &str,
        help: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let value = self.given.remove(&(section, key));
        let (text, origin) = value.unwrap_or_else(|| (default.to_owned(), SettingOrigin::Default));
        let value = read(&text).map_err(|expected| ConfigError::Value {
            at: origin.clone(),
            key: format!("{section}.{key}"),
            text: text.clone(),
            expected,
        })?;
        self.entries.push(EffectiveSetting {
            section,
            key,
            value: text,
            origin,
            help: help.trim(),
        });
        Ok(value)
    }

    /// The error about a value that is in force.
    pub(in crate::config) fn refuse(
        &self,
        section: &str,
        key: &str,
        expected: String,
    ) -> ConfigError {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.section == section && entry.key == key);
        ConfigError::Value {
            at: entry.map_or(SettingOrigin::Default, |entry| entry.origin.clone()),
            key: format!("{section}.{key}"),
            text: entry.map_or_else(String::new, |entry| entry.value.clone()),
            expected,
        }
    }
}

/// Declares a section: its struct, its table of keys and its reader.
macro_rules! section {
    ($(#[doc = $about:literal])+ $name:ident, $section:literal {
        $($(#[doc = $help:literal])+ $key:ident: $ty:ty = $default:literal, $read:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[doc = $help])+ pub $key: $ty,)+ }

        impl $name {
            pub(in crate::config) const TABLE: $crate::config::setting::section::SectionTable =
                $crate::config::setting::section::SectionTable {
                    name: $section,
                    keys: &[$(stringify!($key)),+],
                };

            pub(in crate::config) fn read(
                values: &mut $crate::config::setting::section::SectionValues,
            ) -> Result<Self, $crate::config::ConfigError> {
                Ok(Self {
                    $($key: values.take(
                        $section,
                        stringify!($key),
                        $default,
                        concat!($($help),+),
                        $read,
                    )?,)+
                })
            }
        }
    };
}
pub(in crate::config) use section;
