//! A reader that stops reading: it subscribes, takes the acknowledgement, and then leaves
//! everything in the socket's buffers, which it has made as small as the system lets it.

use turnwire_event::{Event, Position, SessionId};

use super::ask::Ask;
use super::client::{Client, End, Refused, Seen};
use crate::rest::Rest;

/// The receive buffer it asks for; the system makes it a little larger.
const BUFFER: u32 = 2_048;

/// A frozen client.
#[derive(Debug)]
pub struct Frozen(Client);

impl Frozen {
    /// Connects, subscribes, and reads no more than the acknowledgement.
    pub async fn connect(
        rest: &Rest,
        name: &str,
        session: SessionId,
        ask: &Ask,
    ) -> Result<Self, Refused> {
        let mut client = Client::connect_small(rest, name, session, Some(BUFFER)).await?;
        client.subscribed(ask).await.map_err(|end| Refused {
            status: 0,
            body: end.to_string(),
        })?;
        Ok(Self(client))
    }

    /// Reads all that is still there: the events, the last id, and how the connection ended.
    pub async fn thaw(mut self) -> (Vec<Event>, Option<Position>, End) {
        let mut events = Vec::new();
        loop {
            match self.0.next().await {
                Ok(Seen::Event(event)) => events.push(*event),
                Ok(Seen::Frame(_)) => {}
                Err(end) => return (events, self.0.last(), end),
            }
        }
    }
}
