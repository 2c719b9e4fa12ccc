//! Opens the server or the data folder that a command names.

use std::path::Path;

use anyhow::{Context as _, Result};
use turnwire_client::Client;
use turnwire_log::sqlite::SqliteStore;

use crate::args::{ClientArgs, SourceArgs};
use crate::session_source::SessionSource;

/// A [`Client`] of the server that a command names.
pub(crate) fn client(args: &ClientArgs) -> Result<Client> {
    Ok(Client::new(&args.server)?.for_owner(&args.owner()))
}

/// Opens a data folder as a read-only [`SqliteStore`]; a server may run on it.
pub(crate) fn folder(dir: &Path) -> Result<SqliteStore> {
    SqliteStore::open_read_only(dir)
        .with_context(|| format!("opening the data folder {}", dir.display()))
}

/// The [`SessionSource`] that a command names.
pub(crate) fn source(args: &SourceArgs) -> Result<SessionSource> {
    Ok(match &args.data {
        None => SessionSource::Server(client(&args.client)?),
        Some(dir) => SessionSource::Folder(Box::new(folder(dir)?)),
    })
}

/// The context of errors from reading a [`SessionSource`].
pub(crate) fn context(args: &SourceArgs) -> String {
    match &args.data {
        None => format!("asking {} about {}", args.client.server, args.session),
        Some(dir) => format!("reading {} of {}", args.session, dir.display()),
    }
}
