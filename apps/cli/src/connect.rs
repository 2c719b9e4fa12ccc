//! Opening what a command names: the server it asks, or the folder it reads.

use std::path::Path;

use anyhow::{Context as _, Result};
use turnwire_client::Client;
use turnwire_log::sqlite::SqliteStore;

use crate::args::{ClientArgs, SourceArgs};
use crate::session_source::SessionSource;

/// A client of the server a command names.
pub(crate) fn client(speaker: &ClientArgs) -> Result<Client> {
    Ok(Client::new(&speaker.server)?.for_owner(&speaker.owner()))
}

/// A data folder, for reading alone; a server may be at work on it.
pub(crate) fn folder(dir: &Path) -> Result<SqliteStore> {
    SqliteStore::open_read_only(dir)
        .with_context(|| format!("opening the data folder {}", dir.display()))
}

/// Where a command reads from.
pub(crate) fn source(place: &SourceArgs) -> Result<SessionSource> {
    let Some(dir) = &place.data else {
        return Ok(SessionSource::Server(client(&place.speaker)?));
    };
    Ok(SessionSource::Folder(Box::new(folder(dir)?)))
}

/// What a command reads from, for complaints.
pub(crate) fn name(place: &SourceArgs) -> String {
    match &place.data {
        None => format!("asking {} about {}", place.speaker.server, place.session),
        Some(dir) => format!("reading {} of {}", place.session, dir.display()),
    }
}
