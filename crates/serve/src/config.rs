//! The settings of the server, one file per section, each with its bounds and its reason.
//!
//! ```text
//! flag  >  TURNWIRE_<SECTION>_<KEY>  >  file ($TURNWIRE_HOME/turnwire.yaml or --config)  >  default
//! ```
//! An unknown setting is an error that names its position; an invalid value is an error that says
//! what is expected. Times are in milliseconds unless a key says otherwise, sizes in bytes.

pub mod setting;
pub mod access;
pub mod http;
pub mod stream;
pub mod wire;
pub mod turn;
pub mod session;
pub mod store;
pub mod script;
pub mod pack;
pub mod model;
pub mod outbound;
pub mod tool;
pub mod log;

use std::path::{Path, PathBuf};

use access::auth::AuthMode;
pub use access::{auth, listen, quota, server};
pub use outbound::{dial, relay};
use setting::file;
pub use setting::origin::{ConfigError, SettingOrigin};
pub use setting::section::EffectiveSetting;
use setting::section::{SectionTable, SectionValues};

const ENV_PREFIX: &str = "TURNWIRE_";
const FILE_NAME: &str = "turnwire.yaml";
/// In the home folder.
const TOKENS_FILE_NAME: &str = "tokens.json";

/// The share of one owner in `total`: `per_owner`, and three quarters at most, so that others always
/// have some. At least one.
pub(crate) fn owner_share(per_owner: usize, total: usize) -> usize {
    per_owner.min(total - total.div_ceil(4)).max(1)
}

/// Declares [`ServerConfig`] and the table of its sections.
macro_rules! sections {
    ($($(#[doc = $about:literal])* $name:ident: $section:ident,)+) => {
        const TABLES: &[SectionTable] = &[$($name::$section::TABLE),+];

        /// Everything that can be set.
        #[derive(Clone, Debug, PartialEq)]
        pub struct ServerConfig {
            /// The folder that holds all state.
            pub home: PathBuf,
            $($(#[doc = $about])* pub $name: $name::$section,)+
            entries: Vec<EffectiveSetting>,
        }

        impl ServerConfig {
            fn read(home: PathBuf, values: &mut SectionValues) -> Result<Self, ConfigError> {
                Ok(Self {
                    home,
                    $($name: $name::$section::read(values)?,)+
                    entries: Vec::new(),
                })
            }
        }
    };
}

sections! {
    /// Where the server listens, and how it shuts down.
    listen: Listen,
    /// How the server is reached from outside.
    server: Server,
    /// Who may call the server.
    auth: Auth,
    /// Limits of a request.
    http: Http,
    /// Streams of both wires.
    stream: Stream,
    wire: Wire,
    turn: Turn,
    session: Session,
    /// What each principal and each tenant may use.
    quota: Quota,
    store: Store,
    script: Script,
    pack: Pack,
    /// Models of remote providers.
    model: Model,
    /// Hosts that the server may call.
    dial: Dial,
    /// Agents that run elsewhere.
    relay: Relay,
    tool: Tool,
    /// The server's own log.
    log: Log,
}

/// A setting on the command line.
#[derive(Clone, Debug)]
pub struct SettingFlag {
    /// The flag as it was written, for error messages: `--listen`.
    pub name: &'static str,
    /// The section and key that the flag sets: `listen.address`.
    pub key: &'static str,
    pub value: String,
}

/// The sources of settings.
#[derive(Clone, Debug, Default)]
pub struct SettingSources {
    /// The settings on the command line.
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
    /// Reads the settings of all sources and checks them.
    pub fn load(sources: &SettingSources) -> Result<Self, ConfigError> {
        let home = sources.home()?;
        let mut values = SectionValues::default();
        read_file(sources, &home, &mut values)?;
        read_env(sources, &mut values)?;
        read_flags(sources, &mut values)?;
        let mut config = Self::read(home, &mut values)?;
        config.check(&values)?;
        config.entries = values.entries;
        Ok(config)
    }

    /// Every setting in force and where it comes from, in the order of the sections.
    pub fn entries(&self) -> &[EffectiveSetting] {
        &self.entries
    }

    /// Checks values that depend on each other.
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
        self.check_access(values)?;
        if m.record.is_some() && self.script.file.is_some() {
            let expected = "none beside script.file: where a script speaks, no provider streams \
                            anything to record; leave one of the two out";
            return Err(values.refuse("model", "record", expected.to_owned()));
        }
        Ok(())
    }
}

impl ServerConfig {
    /// The file of API tokens.
    pub fn tokens_file(&self) -> PathBuf {
        let named = self.auth.tokens_file.clone();
        named.unwrap_or_else(|| self.home.join(TOKENS_FILE_NAME))
    }

    /// Checks that nobody can reach a server that believes everybody, and that the settings of the
    /// mode are complete.
    fn check_access(&self, values: &SectionValues) -> Result<(), ConfigError> {
        let (auth, refuse) = (&self.auth, |section, key, expected: &str| {
            Err(values.refuse(section, key, expected.to_owned()))
        });
        if auth.mode == AuthMode::None {
            if !self.listen.address.ip().is_loopback() {
                let expected = "a loopback address such as 127.0.0.1:8421 while auth.mode is none: \
                                requests are not authenticated, so the server must not be reachable \
                                from other machines";
                return refuse("listen", "address", expected);
            }
            if self.server.public_url.is_some() {
                let expected = "none while auth.mode is none: a server that others reach must \
                                authenticate them";
                return refuse("server", "public_url", expected);
            }
        }
        if auth.mode == AuthMode::Jwt {
            if auth.jwt_issuer.is_none() {
                return refuse(
                    "auth",
                    "jwt_issuer",
                    "the issuer of the tokens, since auth.mode is jwt",
                );
            }
            if auth.jwt_audience.is_empty() {
                let expected = "the audience of the tokens, since auth.mode is jwt";
                return refuse("auth", "jwt_audience", expected);
            }
            if auth.jwt_jwks.is_none() {
                let expected = "the URL or the file of the keys, since auth.mode is jwt";
                return refuse("auth", "jwt_jwks", expected);
            }
        }
        Ok(())
    }
}

fn read_file(
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

fn read_env(sources: &SettingSources, values: &mut SectionValues) -> Result<(), ConfigError> {
    for (name, value) in &sources.env {
        let Some(setting) = name.strip_prefix(ENV_PREFIX) else {
            continue;
        };
        if setting == "LOG" && sources.var("TURNWIRE_LOG_FILTER").is_none() {
            let at = SettingOrigin::Env(name.clone());
            values.set("log", "filter", value.clone(), at);
        }
        // Other programs have variables with this prefix too; only a variable that names a section
        // must name one of its keys.
        let setting = setting.to_ascii_lowercase();
        if let Some((section, key)) = setting.split_once('_')
            && TABLES.iter().any(|table| table.name == section)
        {
            let at = SettingOrigin::Env(name.clone());
            let (section, key) = find(section, key, &at)?;
            values.set(section, key, value.clone(), at);
        }
    }
    Ok(())
}

fn read_flags(sources: &SettingSources, values: &mut SectionValues) -> Result<(), ConfigError> {
    for flag in &sources.flags {
        let at = SettingOrigin::Flag(flag.name.to_owned());
        let (section, key) = flag.key.split_once('.').unwrap_or((flag.key, ""));
        let (section, key) = find(section, key, &at)?;
        values.set(section, key, flag.value.clone(), at);
    }
    Ok(())
}

/// Looks up a setting by the names of its section and its key.
fn find(
    section: &str,
    key: &str,
    at: &SettingOrigin,
) -> Result<(&'static str, &'static str), ConfigError> {
    let unknown = |known| ConfigError::Unknown {
        at: at.clone(),
        name: format!("{section}.{key}"),
        known,
    };
    let table = TABLES.iter().find(|table| table.name == section);
    let table = table.ok_or_else(|| unknown("there is no such section".to_owned()))?;
    let known_key = table.keys.iter().copied().find(|known| *known == key);
    let known_key = known_key
        .ok_or_else(|| unknown(format!("section {section} has: {}", table.keys.join(", "))))?;
    Ok((table.name, known_key))
}

#[cfg(test)]
mod tests;
