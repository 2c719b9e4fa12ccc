//! Opening what a command names: the server it asks, or the folder it reads.

use anyhow::{Context as _, Result};
use turnwire_client::Client;
use turnwire_log::sqlite::Sqlite;

use crate::args::Place;
use crate::source::Source;

/// A client of the server a command names.
pub(crate) fn client(place: &Place) -> Result<Client> {
    Ok(Client::new(&place.server)?.speaking_for(&place.owner()))
}

/// Where a command reads from.
pub(crate) fn source(place: &Place) -> Result<Source> {
    let Some(dir) = &place.data else {
        return Ok(Source::Server(client(place)?));
    };
    let store = Sqlite::open_read_only(dir)
        .with_context(|| format!("opening the data folder {}", dir.display()))?;
    Ok(Source::Folder(Box::new(store)))
}

/// What a command reads from, for complaints.
pub(crate) fn name(place: &Place) -> String {
    match &place.data {
        None => format!("asking {} about {}", place.server, place.session),
        Some(dir) => format!("reading {} of {}", place.session, dir.display()),
    }
}
