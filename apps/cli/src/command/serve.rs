//! `turnwire serve` and `turnwire relay`: loads the settings, starts the log output, and runs the server.

use anyhow::{Context as _, Result};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, reload};
use turnwire_serve::app;
use turnwire_serve::config::ServerConfig;
use turnwire_serve::config::log::{Log, LogFormat};
use turnwire_serve::host::BundledService;
use turnwire_serve::host::reload::{ReloadOutcome, Reloader};
use turnwire_tool::guard;

use crate::args::{RelayArgs, SettingArgs};
use crate::command::settings;
use crate::terminal::color::ColorMode;

/// The data service of the demo pack.
const DEMO: BundledService = BundledService {
    variable: turnwire_demo::VARIABLE,
    start: turnwire_demo::start,
};

/// Runs the server until a signal ends it.
pub(crate) fn run(args: SettingArgs) -> Result<()> {
    serve(move || settings::load(&args))
}

/// Runs the server in front of an upstream.
pub(crate) fn relay(args: RelayArgs) -> Result<()> {
    serve(move || settings::load_relay(&args))
}

fn serve(load: impl Fn() -> Result<ServerConfig> + Send + 'static) -> Result<()> {
    // First: the environment has keys, which the programs of tools must not read from this process.
    guard::deny_inspection().context("the environment cannot be hidden from programs")?;
    let config = load()?;
    let set_filter = write_log(&config.log)?;
    let reloader = Reloader::default();
    let mut used = config.clone();
    let reload = move || match load() {
        Ok(config) => reload_settings(&mut used, config, &set_filter),
        Err(error) => ReloadOutcome::Refused(format!("{error:#}")),
    };
    reloader.add("settings", Box::new(reload));
    Ok(app::run(config, &[DEMO], &reloader)?)
}

/// Applies the log filter of settings that were read again; names the others that have changed.
fn reload_settings(
    used: &mut ServerConfig,
    config: ServerConfig,
    set_filter: &SetFilter,
) -> ReloadOutcome {
    let is_new = config.log.filter != used.log.filter;
    if is_new && let Err(error) = set_filter(&config.log.filter) {
        return ReloadOutcome::Refused(format!("{error:#}"));
    }
    let entries = config.entries().iter().zip(used.entries());
    let changed = entries.filter(|(new, old)| new.value != old.value);
    let names = changed.map(|(new, _)| format!("{}.{}", new.section, new.key));
    let waiting: Vec<_> = names.filter(|name| name != "log.filter").collect();
    if !waiting.is_empty() {
        let settings = waiting.join(", ");
        tracing::warn!(
            settings,
            "these settings have changed: restart the server to apply them"
        );
    }
    used.log.filter = config.log.filter;
    match is_new {
        true => ReloadOutcome::Applied,
        false => ReloadOutcome::Unchanged,
    }
}

/// Replaces the filter of the log.
type SetFilter = Box<dyn Fn(&str) -> Result<()> + Send>;

/// Sends the server's log to standard error; standard output is for its address.
fn write_log(log: &Log) -> Result<SetFilter> {
    let (layer, handle) = reload::Layer::new(parse_filter(&log.filter)?);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(ColorMode::of_stderr() == ColorMode::Color);
    let registry = tracing_subscriber::registry().with(layer);
    match log.format {
        LogFormat::Text => registry.with(lines).init(),
        LogFormat::Json => registry.with(lines.json()).init(),
    }
    Ok(Box::new(move |own| Ok(handle.reload(parse_filter(own)?)?)))
}

fn parse_filter(own: &str) -> Result<EnvFilter> {
    EnvFilter::try_new(filter(own)).with_context(|| format!("log.filter cannot be {own:?}"))
}

/// The log filter. Lines of `rmcp`, also warnings, contain whole messages of tool servers, so they
/// are off unless `own` names them: the last directive for a target applies.
fn filter(own: &str) -> String {
    format!("rmcp=off,{own}")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("lines").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(own: &str) -> String {
        let lines = Lines::default();
        let kept = lines.clone();
        let log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_new(filter(own)).expect("a filter"))
            .with_writer(move || kept.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            tracing::warn!(target: "rmcp::service", "mcp line");
            tracing::error!(target: "turnwire_serve", "server line");
        });
        let lines = lines.0.lock().expect("lines").clone();
        String::from_utf8(lines).expect("text")
    }

    #[test]
    fn mcp_lines_are_logged_only_if_the_filter_names_them() {
        for own in ["info", "trace", "error", "turnwire_serve=debug"] {
            let output = logged(own);
            assert!(
                output.contains("server line") && !output.contains("mcp line"),
                "{own}: {output}"
            );
        }
        for own in [
            "info,rmcp=warn",
            "rmcp=debug,info",
            "rmcp::service=warn,error",
        ] {
            let output = logged(own);
            assert!(
                output.contains("server line") && output.contains("mcp line"),
                "{own}: {output}"
            );
        }
    }
}
