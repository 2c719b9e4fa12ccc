//! Opens many chat streams at once, to reach the connection limits.

use turnwire_event::TurnId;

use super::stream::{ChatRefused, ChatStream};
use super::submit::CursorPlacement;
use crate::api::ApiClient;

/// Opens `count` streams of a turn concurrently, and returns every result.
pub async fn open_streams(
    api: &ApiClient,
    name: &str,
    turn: TurnId,
    count: usize,
) -> Vec<Result<ChatStream, ChatRefused>> {
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let (api, name) = (api.clone(), format!("{name} {number}"));
            tokio::spawn(async move {
                ChatStream::resume(&api, &name, turn, None, CursorPlacement::Header, None).await
            })
        })
        .collect();
    let mut streams = Vec::with_capacity(count);
    for task in tasks {
        streams.push(task.await.expect("a stream's task"));
    }
    streams
}
