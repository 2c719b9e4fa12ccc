//! The session wire on a WebSocket: from the upgrade with a token to the last frame.
//!
//! The carrier delivers the events of a `SessionStream`; the frames of the client (`inbound`) are
//! handled here.

mod failure;
mod format;
mod workers;
mod subscription;
mod delivery;
mod stream;
mod inbound;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response};
use turnwire_event::SessionId;
use turnwire_identity::Caller;
use turnwire_wire::problem::Code;

use crate::error::RequestFault;
use crate::listen::{OwnerPermit, SocketTakeover, TakenSocket};

use super::Streams;
use super::carrier::websocket::upgrade;
use stream::SessionStream;

/// The response to an upgrade request with a valid attach `token`; a `SessionStream` takes over the
/// socket.
pub async fn open(
    streams: Arc<Streams>,
    (id, token, site): (SessionId, &str, Option<&HeaderValue>),
    headers: &HeaderMap,
) -> Result<Response<Body>, RequestFault> {
    let accept_key = upgrade::accept_key(headers).ok_or_else(|| {
        let detail = "This path speaks WebSocket (RFC 6455, version 13).";
        RequestFault::new(Code::InvalidRequest, detail)
    })?;
    let share = |caller: &Caller| streams.connections.acquire(&caller.owner);
    let (caller, share) = streams.attach_tokens.redeem(id, token, site, share)?;
    let tasks = streams.tasks.clone();
    let run = move |taken| tasks.track_future(run(streams, id, (caller, share), taken));
    Ok(upgrade::response(&accept_key, SocketTakeover::new(run)))
}

async fn run(
    streams: Arc<Streams>,
    id: SessionId,
    (caller, share): (Caller, OwnerPermit),
    taken: TakenSocket,
) {
    let settings = &streams.settings;
    let deadline = Duration::from_millis(settings.write_deadline_ms);
    let opened = upgrade::open(taken, deadline, settings.frame_in_max_bytes);
    let Some((socket, permit)) = opened.await else {
        return;
    };
    // A session deleted after its token was issued still gets an answer to its subscribe.
    let live = streams.sessions.open(&caller.owner, id).await;
    let number = streams.next_connection.fetch_add(1, Ordering::Relaxed);
    SessionStream::new(streams, (live, &caller), format!("ws-{number}"))
        .carrier(socket)
        .run()
        .await;
    drop((permit, share));
}
