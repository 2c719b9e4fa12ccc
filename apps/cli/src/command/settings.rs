//! Loads the server's settings for the commands, and prints them: `turnwire config show`.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use turnwire_serve::config::{self, EffectiveSetting, SettingFlag, SettingSources};

use crate::args::{ConfigShowArgs, RelayArgs, SettingArgs};
use crate::terminal::output::print;

/// Loads the effective settings: from the flags in `args`, then the environment, then the config
/// file, then the defaults.
pub(crate) fn load(args: &SettingArgs) -> Result<config::ServerConfig> {
    load_with(args, (None, None))
}

/// [`load`] with the upstream of `turnwire relay`.
pub(crate) fn load_relay(args: &RelayArgs) -> Result<config::ServerConfig> {
    load_with(&args.settings, (Some(&args.upstream), args.model.as_ref()))
}

/// [`load`] with an upstream and the model to ask it for.
fn load_with(
    args: &SettingArgs,
    (upstream, model): (Option<&String>, Option<&String>),
) -> Result<config::ServerConfig> {
    let path_text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let log_format = args.log_json.then(|| "json".to_owned());
    let flags = [
        ("--listen", "listen.address", args.listen.clone()),
        ("--script", "script.file", path_text(&args.script)),
        ("--pack", "pack.dir", path_text(&args.pack)),
        ("--record", "model.record", path_text(&args.record)),
        ("--wire-version", "wire.version", args.wire_version.clone()),
        ("--log-json", "log.format", log_format),
        ("--upstream", "relay.upstream", upstream.cloned()),
        ("--model", "relay.model", model.cloned()),
    ];
    let given_flag = |(name, key, value): (_, _, Option<String>)| {
        value.map(|value| SettingFlag { name, key, value })
    };
    let sources = SettingSources {
        flags: flags.into_iter().filter_map(given_flag).collect(),
        config: args.config.clone(),
        home: args.home.clone(),
        ..SettingSources::from_env()
    };
    Ok(config::ServerConfig::load(&sources)?)
}

/// The data folder: `home_flag` if it is given, else that of a server that is started without
/// flags.
pub(crate) fn home(home_flag: Option<PathBuf>) -> Result<PathBuf> {
    match home_flag {
        Some(home) => Ok(home),
        None => Ok(config::ServerConfig::load(&SettingSources::from_env())?.home),
    }
}

/// Prints the data folder and every setting with its value, origin and help, as text or JSON.
pub(crate) fn show(args: &ConfigShowArgs) -> Result<()> {
    let config = load(&args.settings)?;
    print(&if args.json {
        let entries: Vec<_> = config.entries().iter().map(as_json).collect();
        format!("{:#}\n", json!({"home": config.home, "settings": entries}))
    } else {
        let lines: String = config.entries().iter().map(as_text).collect();
        format!("home = {}\n{lines}", config.home.display())
    });
    Ok(())
}

fn setting_name(entry: &EffectiveSetting) -> String {
    format!("{}.{}", entry.section, entry.key)
}

fn as_text(entry: &EffectiveSetting) -> String {
    let (value, origin, help) = (&entry.value, &entry.origin, &entry.help);
    let name = setting_name(entry);
    format!("{name} = {value}  ({origin})\n    {help}\n")
}

fn as_json(entry: &EffectiveSetting) -> serde_json::Value {
    json!({
        "setting": setting_name(entry),
        "value": entry.value,
        "from": entry.origin.to_string(),
        "help": entry.help,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> SettingArgs {
        SettingArgs {
            config: None,
            listen: Some("127.0.0.1:9".into()),
            home: Some("/nowhere".into()),
            script: None,
            pack: None,
            record: Some("/nowhere/c.jsonl".into()),
            wire_version: Some("0.4".into()),
            log_json: true,
        }
    }

    #[test]
    fn flags_become_settings_with_their_origin() {
        let config = load(&settings()).expect("good flags");
        let text: String = config.entries().iter().map(as_text).collect();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.contains(&"listen.address = 127.0.0.1:9  (--listen)"));
        assert!(lines.contains(&"log.format = json  (--log-json)"));
        assert!(lines.contains(&"wire.version = 0.4  (--wire-version)"));
        assert!(lines.contains(&"model.record = /nowhere/c.jsonl  (--record)"));
        for entry in config.entries() {
            assert!(
                lines.contains(&format!("    {}", entry.help).as_str()),
                "{entry:?}"
            );
        }
    }

    // S3-102
    #[test]
    fn operations_md_lists_every_setting_with_its_default() {
        let defaults_only = SettingSources {
            home: Some("/nowhere".into()),
            ..SettingSources::default()
        };
        let config = config::ServerConfig::load(&defaults_only).expect("defaults");
        let page = include_str!("../../../../docs/operations.md");
        let rows: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        for entry in config.entries() {
            let value = match entry.value.as_str() {
                "" => "none".to_owned(),
                value => format!("`{value}`"),
            };
            let row = format!("| `{}.{}` | {value} | ", entry.section, entry.key);
            assert!(rows.iter().any(|line| line.starts_with(&row)), "{row}");
        }
    }

    // S3-109
    #[test]
    fn operations_md_lists_every_metric() {
        let page = include_str!("../../../../docs/operations.md");
        for metric in turnwire_event::metric::ALL {
            let row = format!("| `{}` | {} |", metric.name, metric.help);
            assert!(page.lines().any(|line| line == row), "{row}");
        }
    }
}
