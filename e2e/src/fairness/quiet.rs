//! The quiet owners: each sends a small request at a fixed interval, whatever became of the one
//! before it. A request that waits does not delay the next, so that waiting is not measured less
//! often than it happens.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::LoadClient;
use super::resource::quiet_session;
use super::sample::{QuietKind, QuietSample};

/// The number of quiet owners.
pub const OWNERS: usize = 10;
/// The interval of one owner's requests.
pub const INTERVAL: Duration = Duration::from_millis(150);
/// The time after which a request counts as failed.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// A quiet owner with a session of its own.
#[derive(Clone, Debug)]
pub struct QuietOwner {
    client: LoadClient,
    session: String,
}

impl QuietOwner {
    /// Creates the owners and their sessions.
    pub async fn all(addr: SocketAddr) -> io::Result<Vec<Self>> {
        let mut owners = Vec::with_capacity(OWNERS);
        for number in 0..OWNERS {
            let client = LoadClient::new(addr, format!("quiet-{number}"));
            let session = quiet_session(&client).await?;
            owners.push(Self { client, session });
        }
        Ok(owners)
    }

    /// Sends a request of a kind; the error says what was wrong with the answer.
    async fn request(&self, kind: QuietKind) -> Result<(), String> {
        let Self { client, session } = self;
        let io_text = |error: io::Error| error.to_string();
        let (status, wanted) = match kind {
            QuietKind::Create => {
                let reply = client.request("POST", "/sessions", Some("{}")).await;
                (reply.map_err(io_text)?.status, 201)
            }
            QuietKind::Session => {
                let path = format!("/sessions/{session}");
                let reply = client.request("GET", &path, None).await;
                (reply.map_err(io_text)?.status, 200)
            }
            QuietKind::Events => {
                let path = format!("/sessions/{session}/events?limit=20");
                let reply = client.request("GET", &path, None).await;
                (reply.map_err(io_text)?.status, 200)
            }
            QuietKind::Subscribe => match client.subscribe(session, None, None).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(reply)) => (reply.status, 101),
                Err(error) => return Err(error.to_string()),
            },
            QuietKind::FirstToken => return self.first_token("hello").await,
            QuietKind::Program => return self.first_token("check").await,
        };
        if status == wanted {
            Ok(())
        } else {
            Err(format!("status {status}"))
        }
    }

    /// Starts a turn and reads its stream up to the first text. The rest is read beside, because a
    /// stream that is closed early cancels its turn.
    async fn first_token(&self, message: &str) -> Result<(), String> {
        let io_text = |error: io::Error| error.to_string();
        let mut connection = self.client.connect(None).await.map_err(io_text)?;
        let body = serde_json::json!({"message": message}).to_string();
        let close = "connection: close\r\n";
        connection
            .send_with("POST", "/chat/stream", close, Some(&body))
            .await
            .map_err(io_text)?;
        let head = connection.head().await.map_err(io_text)?;
        if head.status != 200 {
            return Err(format!("status {}", head.status));
        }
        let text = connection.read_until(b"event: text").await;
        text.map_err(|_| "the stream ended without text".to_owned())?;
        tokio::spawn(async move { connection.drain().await });
        Ok(())
    }
}

async fn measure(owner: QuietOwner, kind: QuietKind, start: Instant) -> QuietSample {
    tokio::time::sleep_until(start.into()).await;
    let answer = tokio::time::timeout(DEADLINE, owner.request(kind)).await;
    let failure = match answer {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why),
        Err(_) => Some(format!("no answer within {} s", DEADLINE.as_secs())),
    };
    QuietSample {
        kind,
        latency: match failure {
            None => start.elapsed(),
            Some(_) => DEADLINE,
        },
        failure,
    }
}

/// Sends the requests of all owners for `time`, and returns them when the last is answered.
pub async fn run(owners: &[QuietOwner], time: Duration) -> Vec<QuietSample> {
    let begin = Instant::now();
    let rounds = (time.as_millis() / INTERVAL.as_millis()) as usize;
    let mut tasks = JoinSet::new();
    for round in 0..rounds {
        for (number, owner) in owners.iter().enumerate() {
            // Spread over the interval, and over the kinds.
            let offset = INTERVAL * number as u32 / owners.len() as u32;
            let start = begin + INTERVAL * round as u32 + offset;
            let kind = QuietKind::ALL[(round + number) % QuietKind::ALL.len()];
            tasks.spawn(measure(owner.clone(), kind, start));
        }
    }
    tasks.join_all().await
}
