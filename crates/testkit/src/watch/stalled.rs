//! A reader that stops reading: it subscribes, takes the acknowledgement, and then leaves
//! everything in the socket's buffers, which it has made as small as the system lets it.

use turnwire_event::{Event, Position, SessionId};

use super::client::{ConnectRefused, WatchClient, WatchEnd, WatchFrame};
use super::options::SubscribeOptions;
use crate::api::ApiClient;

/// The receive buffer it asks for; the system makes it a little larger.
const BUFFER: u32 = 2_048;

/// A frozen client.
#[derive(Debug)]
pub struct StalledClient(WatchClient);

impl StalledClient {
    /// Connects, subscribes, and reads no more than the acknowledgement.
    pub async fn connect(
        api: &ApiClient,
        name: &str,
        session: SessionId,
        ask: &SubscribeOptions,
    ) -> Result<Self, ConnectRefused> {
        let mut client = WatchClient::connect_small(api, name, session, Some(BUFFER)).await?;
        client.subscribed(ask).await.map_err(|end| ConnectRefused {
            status: 0,
            body: end.to_string(),
        })?;
        Ok(Self(client))
    }

    /// Reads all that is still there: the events, the last id, and how the connection ended.
    pub async fn thaw(mut self) -> (Vec<Event>, Option<Position>, WatchEnd) {
        let mut events = Vec::new();
        loop {
            match self.0.next().await {
                Ok(WatchFrame::Event(event)) => events.push(*event),
                Ok(WatchFrame::Frame(_)) => {}
                Err(end) => return (events, self.0.last(), end),
            }
        }
    }
}
