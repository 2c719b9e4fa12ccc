//! The session wire on a WebSocket: from the upgrade with a token to the last frame.
//!
//! The carrier delivers the events of a `SessionStream`; the client's frames (`inbound`) stay here.

mod failure;
mod format;
mod workers;
mod subscription;
mod stream;
mod inbound;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{HeaderMap, Response};
use turnwire_event::{Owner, SessionId};
use turnwire_session::Error;

use crate::listen::{SocketTakeover, TakenSocket};

use super::Streams;
use super::carrier::websocket::upgrade;
use stream::SessionStream;

/// Why a request is not upgraded.
#[derive(Debug, PartialEq, Eq)]
pub enum UpgradeError {
    /// The request has no WebSocket handshake of version 13.
    NotAnUpgrade,
    /// The token is not valid.
    Session(Error),
}

/// The response to an upgrade request; the connection takes over the request's socket.
pub async fn open(
    streams: Arc<Streams>,
    id: SessionId,
    token: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, UpgradeError> {
    let accept_key = upgrade::accept_key(headers).ok_or(UpgradeError::NotAnUpgrade)?;
    let redeemed = streams.sessions.redeem(id, token);
    let owner = redeemed.map_err(UpgradeError::Session)?;
    let tasks = streams.tasks.clone();
    let run = move |taken| tasks.track_future(run(streams, id, owner, taken));
    Ok(upgrade::response(&accept_key, SocketTakeover::new(run)))
}

async fn run(streams: Arc<Streams>, id: SessionId, owner: Owner, taken: TakenSocket) {
    let options = &streams.options;
    let opened = upgrade::open(taken, options.write_deadline, options.frame_in_max);
    let Some((socket, permit)) = opened.await else {
        return;
    };
    // A session deleted after its token was issued still gets an answer to its subscribe.
    let live = streams.sessions.open(&owner, id).await;
    let number = streams.next_connection.fetch_add(1, Ordering::Relaxed);
    SessionStream::new(streams, live, format!("ws-{number}"))
        .carrier(socket)
        .run()
        .await;
    drop(permit);
}
