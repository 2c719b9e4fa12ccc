//! The configuration file of a server under test: sections of keys and values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The contents of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    sections: BTreeMap<&'static str, BTreeMap<&'static str, String>>,
}

impl ServerSettings {
    /// An empty file: all settings have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key of a section.
    #[must_use]
    pub fn set(mut self, section: &'static str, key: &'static str, value: impl ToString) -> Self {
        self.sections
            .entry(section)
            .or_default()
            .insert(key, value.to_string());
        self
    }

    /// The file as YAML text.
    pub fn yaml(&self) -> String {
        let mut text = String::new();
        for (section, keys) in &self.sections {
            let _ = writeln!(text, "{section}:");
            for (key, value) in keys {
                let _ = writeln!(text, "  {key}: {value}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::ServerSettings;

    #[test]
    fn settings_are_nested_under_sections() {
        let settings = ServerSettings::new()
            .set("b", "x", 1)
            .set("a", "y", "z")
            .set("b", "w", true);
        assert_eq!(settings.yaml(), "a:\n  y: z\nb:\n  w: true\n  x: 1\n");
    }
}
