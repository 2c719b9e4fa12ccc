//! `turnwire completions` and `turnwire man`: generated from the command line's definition.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

use crate::args::{CommandLine, CompletionsArgs, ManArgs};

pub(crate) fn completions(args: &CompletionsArgs) {
    let mut script = Vec::new();
    let mut command = CommandLine::command();
    clap_complete::generate(args.shell, &mut command, "turnwire", &mut script);
    // A reader that closes the pipe early is no error.
    let _ = io::stdout().write_all(&script);
}

pub(crate) fn man(args: &ManArgs) -> Result<()> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(CommandLine::command()).render(&mut page)?;
        let _ = io::stdout().write_all(&page);
        return Ok(());
    };
    let context = || format!("writing the manual into {}", dir.display());
    std::fs::create_dir_all(dir).with_context(context)?;
    clap_mangen::generate_to(CommandLine::command(), dir).with_context(context)
}
