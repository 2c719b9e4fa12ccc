//! Many streams at once, to meet the limits.

use turnwire_event::TurnId;

use super::question::Carry;
use super::stream::{Refused, Stream};
use crate::rest::Rest;

/// Asks for so many streams of a turn side by side, and gives every answer.
pub async fn crowd(
    rest: &Rest,
    name: &str,
    turn: TurnId,
    count: usize,
) -> Vec<Result<Stream, Refused>> {
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let (rest, name) = (rest.clone(), format!("{name} {number}"));
            tokio::spawn(async move {
                Stream::resume(&rest, &name, turn, None, Carry::Header, None).await
            })
        })
        .collect();
    let mut streams = Vec::with_capacity(count);
    for task in tasks {
        streams.push(task.await.expect("a stream's task"));
    }
    streams
}
