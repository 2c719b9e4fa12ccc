//! Many streams at once, to meet the limits.

use turnwire_event::TurnId;

use super::stream::{ChatRefused, ChatStream};
use super::submit::CursorPlacement;
use crate::api::ApiClient;

/// Asks for so many streams of a turn side by side, and gives every answer.
pub async fn crowd(
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
