//! `turnwire serve`: settings in, the server's own life, an exit code out.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tracing_subscriber::EnvFilter;
use turnwire_serve::app;
use turnwire_serve::config::log::{Format, Log};

use crate::args::Serve;
use crate::settings;

/// Runs the server until it is told to stop.
pub(crate) fn run(args: &Serve) -> Result<ExitCode> {
    let config = settings::load(&args.settings)?;
    write_log(&config.log)?;
    app::run(config)?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the server's log to the standard error; the standard output is for its address.
fn write_log(log: &Log) -> Result<()> {
    // Its everyday lines quote what tool servers say; a filter that names it has the last word.
    let filter = format!("rmcp=warn,{}", log.filter);
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("log.filter cannot be {:?}", log.filter))?;
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !no_colour);
    match log.format {
        Format::Text => lines.init(),
        Format::Json => lines.json().init(),
    }
    Ok(())
}
