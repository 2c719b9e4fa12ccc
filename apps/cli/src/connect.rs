//! Opening what a command names: the server it asks, or the folder it reads.

use std::path::Path;

use anyhow::{Context as _, Result};
use turnwire_client::Client;
use turnwire_log::sqlite::SqliteStore;

use crate::args::{Place, Speaker};
use crate::session_source::Source;

/// A client of the server a command names.
pub(crate) fn client(speaker: &Speaker) -> Result<Client> {
    Ok(Client::new(&speaker.server)?.speaking_for(&speaker.owner()))
}

/// A data folder, for reading alone; a server may be at work on it.
pub(crate) fn folder(dir: &Path) -> Result<SqliteStore> {
    SqliteStore::open_read_only(dir)
        .with_context(|| format!("opening the data folder {}", dir.display()))
}

/// Where a command reads from.
pub(crate) fn source(place: &Place) -> Result<Source> {
    let Some(dir) = &place.data else {
        return Ok(Source::Server(client(&place.speaker)?));
    };
    Ok(Source::Folder(Box::new(folder(dir)?)))
}

/// What a command reads from, for complaints.
pub(crate) fn name(place: &Place) -> String {
    match &place.data {
        None => format!("asking {} about {}", place.speaker.server, place.session),
        Some(dir) => format!("reading {} of {}", place.session, dir.display()),
    }
}
