//! A client that stops reading: it subscribes, reads the acknowledgement, and then leaves everything
//! in the socket's buffers, which are as small as the system permits.

use turnwire_event::{Event, Position, SessionId};

use super::client::{ConnectRefused, WatchClient, WatchEnd, WatchFrame};
use super::options::SubscribeOptions;
use crate::api::ApiClient;

/// The requested receive buffer in bytes; the system uses a slightly larger one.
const BUFFER: u32 = 2_048;

/// A client that reads nothing after the acknowledgement.
#[derive(Debug)]
pub struct StalledClient(WatchClient);

impl StalledClient {
    /// Connects, subscribes, and reads only the acknowledgement.
    pub async fn connect(
        api: &ApiClient,
        name: &str,
        session: SessionId,
        ask: &SubscribeOptions,
    ) -> Result<Self, ConnectRefused> {
        let mut client = WatchClient::connect_with_buffer(api, name, session, Some(BUFFER)).await?;
        client.subscribed(ask).await.map_err(|end| ConnectRefused {
            status: 0,
            body: end.to_string(),
        })?;
        Ok(Self(client))
    }

    /// The client, to read on from where it stopped.
    pub fn into_reader(self) -> WatchClient {
        self.0
    }

    /// Reads the buffered frames: the events, the last id, and how the connection ended.
    pub async fn resume_reading(mut self) -> (Vec<Event>, Option<Position>, WatchEnd) {
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
