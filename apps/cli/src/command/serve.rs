//! `turnwire serve` and `turnwire relay`: loads the settings, starts the log output, and runs the server.

use anyhow::{Context as _, Result};
use tracing_subscriber::EnvFilter;
use turnwire_serve::app;
use turnwire_serve::config::ServerConfig;
use turnwire_serve::config::log::{Log, LogFormat};
use turnwire_serve::host::BundledService;
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
pub(crate) fn run(args: &SettingArgs) -> Result<()> {
    serve(|| settings::load(args))
}

/// Runs the server in front of an upstream.
pub(crate) fn relay(args: &RelayArgs) -> Result<()> {
    serve(|| settings::load_relay(args))
}

fn serve(load: impl FnOnce() -> Result<ServerConfig>) -> Result<()> {
    // First: the environment has keys, which the programs of tools must not read from this process.
    guard::deny_inspection().context("the environment cannot be hidden from programs")?;
    let config = load()?;
    write_log(&config.log)?;
    Ok(app::run(config, &[DEMO])?)
}

/// Sends the server's log to standard error; standard output is for its address.
fn write_log(log: &Log) -> Result<()> {
    let filter = EnvFilter::try_new(filter(&log.filter))
        .with_context(|| format!("log.filter cannot be {:?}", log.filter))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ColorMode::of_stderr() == ColorMode::Color);
    match log.format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
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
