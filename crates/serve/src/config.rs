//! Every number and path an operator may set, one file a topic, each with its reason.
//!
//! ```text
//! flag  >  TURNWIRE_<SECTION>_<KEY>  >  file ($TURNWIRE_HOME/turnwire.yaml or --config)  >  default
//! ```
//! What is not known is an error that names its place; what makes no sense is an error that says
//! what would. Times are milliseconds unless a key says otherwise, sizes are bytes.

pub mod setting;
pub mod listen;
pub mod http;
pub mod stream;
pub mod wire;
pub mod turn;
pub mod session;
pub mod store;
pub mod script;
pub mod pack;
pub mod model;
pub mod dial;
pub mod tool;
pub mod log;

use std::path::{Path, PathBuf};

use setting::file;
pub use setting::origin::{ConfigError, SettingOrigin};
pub use setting::section::EffectiveSetting;
use setting::section::{SectionTable, SectionValues};

const ENV_PREFIX: &str = "TURNWIRE_";
const FILE_NAME: &str = "turnwire.yaml";

const TABLES: &[SectionTable] = &[
    listen::Listen::TABLE,
    http::Http::TABLE,
    stream::Stream::TABLE,
    wire::Wire::TABLE,
    turn::Turn::TABLE,
    session::Session::TABLE,
    store::Store::TABLE,
    script::Script::TABLE,
    pack::Pack::TABLE,
    model::Model::TABLE,
    dial::Dial::TABLE,
    tool::Tool::TABLE,
    log::Log::TABLE,
];

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The folder that holds all state.
    pub home: PathBuf,
    /// Where the server listens, and how it leaves.
    pub listen: listen::Listen,
    /// What a request may cost.
    pub http: http::Http,
    /// Streams of both wires.
    pub stream: stream::Stream,
    pub wire: wire::Wire,
    pub turn: turn::Turn,
    pub session: session::Session,
    pub store: store::Store,
    pub script: script::Script,
    pub pack: pack::Pack,
    /// Models that somebody else runs.
    pub model: model::Model,
    /// What the server may call.
    pub dial: dial::Dial,
    pub tool: tool::Tool,
    /// The server's own log.
    pub log: log::Log,
    entries: Vec<EffectiveSetting>,
}

/// A setting said on the command line.
#[derive(Clone, Debug)]
pub struct SettingFlag {
    /// The flag as the person wrote it, for complaints: `--listen`.
    pub name: &'static str,
    /// What it sets: `listen.address`.
    pub key: &'static str,
    pub value: String,
}

/// Where settings are looked for.
#[derive(Clone, Debug, Default)]
pub struct SettingSources {
    /// What the command line says.
    pub flags: Vec<SettingFlag>,
    pub env: Vec<(String, String)>,
    /// The file named on the command line; it must exist.
    pub config: Option<PathBuf>,
    /// The home named on the command line.
    pub home: Option<PathBuf>,
}

impl SettingSources {
    /// The environment of this process, and nothing else yet.
    pub fn from_env() -> Self {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        Self {
            env: std::env::vars_os()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            ..Self::default()
        }
    }

    fn var(&self, name: &str) -> Option<&str> {
        let entry = self.env.iter().find(|(known, _)| known == name);
        entry
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn home(&self) -> Result<PathBuf, ConfigError> {
        if let Some(home) = &self.home {
            return Ok(home.clone());
        }
        if let Some(home) = self.var("TURNWIRE_HOME") {
            return Ok(home.into());
        }
        let user = self.var("HOME").ok_or(ConfigError::NoHome)?;
        Ok(Path::new(user).join(".turnwire"))
    }
}

impl ServerConfig {
    /// Reads what the sources say, and refuses what does not make sense.
    pub fn load(sources: &SettingSources) -> Result<Self, ConfigError> {
        let home = sources.home()?;
        let mut values = SectionValues::default();
        said_in_file(sources, &home, &mut values)?;
        said_in_env(sources, &mut values)?;
        said_by_flags(sources, &mut values)?;
        let mut config = Self {
            home,
            listen: listen::Listen::read(&mut values)?,
            http: http::Http::read(&mut values)?,
            stream: stream::Stream::read(&mut values)?,
            wire: wire::Wire::read(&mut values)?,
            turn: turn::Turn::read(&mut values)?,
            session: session::Session::read(&mut values)?,
            store: store::Store::read(&mut values)?,
            script: script::Script::read(&mut values)?,
            pack: pack::Pack::read(&mut values)?,
            model: model::Model::read(&mut values)?,
            dial: dial::Dial::read(&mut values)?,
            tool: tool::Tool::read(&mut values)?,
            log: log::Log::read(&mut values)?,
            entries: Vec::new(),
        };
        config.check(&values)?;
        config.entries = values.entries;
        Ok(config)
    }

    /// Every setting in force and where it comes from, in the order of the sections.
    pub fn entries(&self) -> &[EffectiveSetting] {
        &self.entries
    }

    /// What no single value can show.
    fn check(&self, values: &SectionValues) -> Result<(), ConfigError> {
        let s = &self.session;
        for (key, page, max) in [
            ("messages_page", s.messages_page, s.messages_page_max),
            ("list_page", s.list_page, s.list_page_max),
            ("events_page", s.events_page, s.events_page_max),
        ] {
            if page > max {
                let expected = format!("at most session.{key}_max, which is {max}");
                return Err(values.refuse("session", key, expected));
            }
        }
        let m = &self.model;
        if m.retry_base_ms > m.retry_max_ms {
            let expected = format!("at most model.retry_max_ms, which is {}", m.retry_max_ms);
            return Err(values.refuse("model", "retry_base_ms", expected));
        }
        if m.record.is_some() && self.script.file.is_some() {
            let expected = "none beside script.file: where a script speaks, no provider streams \
                            anything to record; leave one of the two out";
            return Err(values.refuse("model", "record", expected.to_owned()));
        }
        Ok(())
    }
}

fn said_in_file(
    sources: &SettingSources,
    home: &Path,
    values: &mut SectionValues,
) -> Result<(), ConfigError> {
    let (path, named) = match &sources.config {
        Some(path) => (path.clone(), true),
        None => (home.join(FILE_NAME), false),
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => file::read(&path, &text, TABLES, values),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound && !named => Ok(()),
        Err(why) => Err(ConfigError::Unreadable { path, why }),
    }
}

fn said_in_env(sources: &SettingSources, values: &mut SectionValues) -> Result<(), ConfigError> {
    for (name, value) in &sources.env {
        let Some(setting) = name.strip_prefix(ENV_PREFIX) else {
            continue;
        };
        if setting == "LOG" && sources.var("TURNWIRE_LOG_FILTER").is_none() {
            let at = SettingOrigin::Env(name.clone());
            values.say("log", "filter", value.clone(), at);
        }
        // Other programs of the house have variables of their own; only what names a section
        // here is held to its keys.
        let Some((section, key)) = setting.split_once('_') else {
            continue;
        };
        let wanted = section.to_ascii_lowercase();
        let Some(table) = TABLES.iter().find(|table| table.name == wanted) else {
            continue;
        };
        let at = SettingOrigin::Env(name.clone());
        let key = find(table, &key.to_ascii_lowercase(), &at)?;
        values.say(table.name, key, value.clone(), at);
    }
    Ok(())
}

fn said_by_flags(sources: &SettingSources, values: &mut SectionValues) -> Result<(), ConfigError> {
    for flag in &sources.flags {
        let at = SettingOrigin::Flag(flag.name.to_owned());
        let (section, key) = flag.key.split_once('.').unwrap_or((flag.key, ""));
        let table = TABLES.iter().find(|table| table.name == section);
        let table = table.ok_or_else(|| ConfigError::Unknown {
            at: at.clone(),
            name: flag.key.to_owned(),
            known: "there is no such section".to_owned(),
        })?;
        let key = find(table, key, &at)?;
        values.say(table.name, key, flag.value.clone(), at);
    }
    Ok(())
}

fn find(table: &SectionTable, key: &str, at: &SettingOrigin) -> Result<&'static str, ConfigError> {
    let known_key = table.keys.iter().copied().find(|known| *known == key);
    known_key.ok_or_else(|| ConfigError::Unknown {
        at: at.clone(),
        name: format!("{}.{key}", table.name),
        known: format!("section {} has: {}", table.name, table.keys.join(", ")),
    })
}

#[cfg(test)]
mod tests;
