//! Opens the server or the data folder that a command names.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use turnwire_client::{Client, ExtraAuthorities};
use turnwire_log::sqlite::SqliteStore;

use crate::args::{ClientArgs, SourceArgs};
use crate::session_source::SessionSource;

/// A [`Client`] of the server that a command names.
pub(crate) fn client(args: &ClientArgs) -> Result<Client> {
    let client = Client::trusting(&args.server, authorities(args)?)?;
    let Some(token) = token(args)? else {
        return Ok(client.for_owner(&args.owner()));
    };
    ensure!(
        client.address().is_confidential() || args.allow_http_token,
        "the token would be readable on the way to {}: use an https:// address, or allow it with \
         --allow-http-token (TURNWIRE_ALLOW_HTTP_TOKEN=true) if you trust the network",
        client.address()
    );
    let (principal, tenant) = args.named_owner();
    Ok(client.with_token(&token, principal.as_ref(), tenant))
}

/// The authorities of a command's own.
fn authorities(args: &ClientArgs) -> Result<ExtraAuthorities> {
    let Some(path) = &args.ca_file else {
        return Ok(ExtraAuthorities::default());
    };
    let context = || format!("reading the certificates in {}", path.display());
    let pem = std::fs::read(path).with_context(context)?;
    ExtraAuthorities::from_pem(&pem).with_context(context)
}

/// The API token of a command.
fn token(args: &ClientArgs) -> Result<Option<String>> {
    let Some(path) = &args.token_file else {
        return Ok(args.token.clone());
    };
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("reading the token in {}", path.display()))?;
    let token = text.trim();
    ensure!(
        !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()),
        "{} has no token: expected one line",
        path.display()
    );
    Ok(Some(token.to_owned()))
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
