//! A provider of models that keeps time: it speaks Chat Completions, says so many words at an even
//! pace, and every word says when it was written. As an agent elsewhere it speaks the inner vocabulary.
//!
//! The head is written as soon as the request is there, the first word after the time it thinks. Of
//! a request nothing is read but its end, so that it costs little beside the server that asks.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

use crate::service::request;
use crate::stamp;

/// Command-line arguments of this role.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    /// Words of an answer.
    #[arg(long)]
    words: u32,
    /// From the head to the first word.
    #[arg(long)]
    think_ms: u64,
    /// From one word to the next.
    #[arg(long)]
    every_us: u64,
    /// Speak the inner vocabulary, as an agent that runs elsewhere.
    #[arg(long)]
    inner: bool,
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";

/// The end of a body.
const END: &[u8] = b"0\r\n\r\n";

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, args: Args) -> io::Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(converse(socket, args));
    }
}

/// Requests of one connection, one after the other, until the other side is done.
async fn converse(mut socket: TcpStream, args: Args) -> io::Result<()> {
    while request(&mut socket).await?.is_some() {
        answer(&mut socket, args).await?;
    }
    Ok(())
}

async fn answer(socket: &mut TcpStream, args: Args) -> io::Result<()> {
    let opening = match args.inner {
        // No two answers have the same id: it is the time.
        true => event(&format!(
            r#"{{"type":"response_id","response_id":"run-{:x}"}}"#,
            stamp::unique_us()
        )),
        false => frame(r#"{"role":"assistant","content":""}"#, "null"),
    };
    let head = [HEAD.as_bytes(), &opening].concat();
    socket.write_all(&head).await?;
    let first = Instant::now() + Duration::from_millis(args.think_ms);
    let every = Duration::from_micros(args.every_us);
    for at in 0..args.words {
        if at > 0 || args.think_ms > 0 {
            sleep_until(first + every * at).await;
        }
        let word = match args.inner {
            true => event(&format!(
                r#"{{"type":"text","content":"{}"}}"#,
                stamp::word()
            )),
            false => frame(&format!(r#"{{"content":"{}"}}"#, stamp::word()), "null"),
        };
        socket.write_all(&word).await?;
    }
    let done = chunk("data: [DONE]\n\n");
    let end = match args.inner {
        true => [event(r#"{"type":"completed"}"#), Vec::new(), done],
        false => [frame("{}", r#""stop""#), usage(args.words), done],
    };
    socket
        .write_all(&[end.concat(), END.to_vec()].concat())
        .await
}

/// An event of the inner vocabulary.
fn event(json: &str) -> Vec<u8> {
    chunk(&format!("data: {json}\n\n"))
}

/// A frame with a delta, in a chunk of its own.
fn frame(delta: &str, reason: &str) -> Vec<u8> {
    whole(
        &format!(r#"[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}]"#),
        "null",
    )
}

/// The frame that says what an answer cost.
fn usage(words: u32) -> Vec<u8> {
    let total = words + 100;
    let counts =
        format!(r#"{{"prompt_tokens":100,"completion_tokens":{words},"total_tokens":{total}}}"#);
    whole("[]", &counts)
}

fn whole(choices: &str, usage: &str) -> Vec<u8> {
    chunk(&format!(
        "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\
         \"created\":1794700000,\"model\":\"clock\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"fp_bench\",\"choices\":{choices},\"usage\":{usage}}}\n\n"
    ))
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn every_delta_carries_its_write_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let args = Args {
            words: 3,
            think_ms: 1,
            every_us: 100,
            inner: false,
        };
        let serving = tokio::spawn(serve(listener, args));
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        let before = stamp::now_us();
        for _ in 0..2 {
            let post = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
            socket.write_all(post).await.expect("a request");
            let mut bytes = Vec::new();
            while !bytes.ends_with(END) {
                let len = socket.read_buf(&mut bytes).await.expect("an answer");
                assert!(len > 0, "{}", String::from_utf8_lossy(&bytes));
            }
            let text = String::from_utf8_lossy(&bytes);
            let words = text.split(r#""content":""#).skip(2);
            let times: Vec<u64> = words
                .filter_map(|word| stamp::times(word.split('"').next()?).next())
                .collect();
            assert_eq!(times.len(), 3, "{text}");
            assert!(times.is_sorted() && times[0] >= before, "{times:?}");
            assert!(text.contains("data: [DONE]\n\n"));
        }
        serving.abort();
    }
}
