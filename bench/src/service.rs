//! A data service that takes its time: `POST /v1/enrich` is answered with an envelope made
//! beforehand, each after the same delay.
//!
//! Of a request it reads no more than which enricher is meant, so that it costs little beside the
//! server it answers. It speaks for the one person of a run.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use turnwire_testkit::data_service::envelope;

/// Whom the envelopes are for: who asks must be that person.
pub const PRINCIPAL: &str = "user-42";

const ENRICHERS: [&str; 3] = ["offer_search", "points", "answers"];

/// The longest request that is read; those of a run have a few hundred bytes.
const REQUEST_MAX: usize = 64 * 1024;

/// Command-line arguments of this role.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    /// How long each answer takes.
    #[arg(long)]
    delay_ms: u64,
}

/// Its answers, by enricher, as they are written.
type Answers = Arc<[(&'static str, Vec<u8>)]>;

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, args: Args) -> io::Result<()> {
    let answers: Answers = ENRICHERS
        .map(|enricher| (enricher, answer("200 OK", &envelope(enricher).to_string())))
        .into();
    let delay = Duration::from_millis(args.delay_ms);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(converse(socket, Arc::clone(&answers), delay));
    }
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Requests of one connection, one after the other, until the other side is done.
async fn converse(mut socket: TcpStream, answers: Answers, delay: Duration) -> io::Result<()> {
    while let Some(body) = request(&mut socket).await? {
        let enricher_id = enricher(&body);
        tokio::time::sleep(delay).await;
        match answers.iter().find(|(name, _)| *name == enricher_id) {
            Some((_, known)) => socket.write_all(known).await?,
            None => socket.write_all(&answer("404 Not Found", "{}")).await?,
        }
    }
    Ok(())
}

/// The body of the next request; none at the end.
pub(crate) async fn request(socket: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(2048);
    while bytes.len() <= REQUEST_MAX {
        if let Some(body) = whole(&bytes) {
            return Ok(Some(body.to_vec()));
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The body of a request whose bytes have all come.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = str::from_utf8(&bytes[..end]).ok()?;
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(Some(0), |(_, value)| value.trim().parse().ok())?;
    bytes.get(end + 4..(end + 4).checked_add(length)?)
}

/// Which enricher a request means; nothing if it does not say.
fn enricher(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct EnrichRequest {
        enricher_id: String,
    }
    serde_json::from_slice::<EnrichRequest>(body)
        .map_or_else(|_| String::new(), |asked| asked.enricher_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_complete_with_its_body() {
        let text = b"POST /v1/enrich HTTP/1.1\r\nhost: a\r\nCONTENT-LENGTH: 4\r\n\r\n{\"a\"";
        assert_eq!(whole(text), Some(&b"{\"a\""[..]));
        assert_eq!(whole(&text[..text.len() - 1]), None);
        assert_eq!(whole(&text[..20]), None);
    }

    #[test]
    fn enricher_is_read_from_the_body() {
        assert_eq!(enricher(br#"{"enricher_id":"points","x":1}"#), "points");
        assert_eq!(enricher(b"nonsense"), "");
    }

    #[test]
    fn envelope_is_addressed_to_the_caller() {
        for name in ENRICHERS {
            assert_eq!(envelope(name)["principal"], PRINCIPAL);
            assert_eq!(envelope(name)["enricher_id"], name);
        }
    }
}
