//! Where a setting comes from, and what is wrong with one: every error starts with the position that
//! a person has to correct.

use std::fmt;
use std::path::PathBuf;

/// The source of a value; a source takes precedence over those above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The built-in default value.
    Default,
    /// A place in the config file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
    },
    /// The environment variable with this name.
    Env(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: the config file cannot be read: {why}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The file does not have the form of a config file.
    #[error("{at}: {message}")]
    File {
        /// The place in it.
        at: SettingOrigin,
        /// What is wrong there.
        message: String,
    },
    /// A setting that does not exist.
    #[error("{at}: there is no setting {name}; {known}")]
    Unknown {
        /// The source of the setting.
        at: SettingOrigin,
        /// The setting that was asked for.
        name: String,
        /// The settings that exist, as a list.
        known: String,
    },
    /// A value that its setting does not allow.
    #[error("{at}: {key} cannot be {text:?}; expected {expected}")]
    Value {
        /// The source of the setting.
        at: SettingOrigin,
        /// The setting, as `section.key`.
        key: String,
        /// The value as it was written.
        text: String,
        /// The values that are valid.
        expected: String,
    },
    /// There is no home.
    #[error("there is no home directory to keep data in; set TURNWIRE_HOME")]
    NoHome,
}
