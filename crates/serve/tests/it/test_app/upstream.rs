//! A provider written by hand: it reads one request a connection, keeps it, and answers with the
//! bytes it is told, chat completions as they are on the wire.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The words of an answer, before its end.
const WORDS: &str = concat!(
    "data: {\"id\":\"chatcmpl-7\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
    "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Guten \"},\"finish_reason\":null}]}\n\n",
    "data: {\"id\":\"chatcmpl-7\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
    "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Tag.\"},\"finish_reason\":null}]}\n\n",
);

/// The end of one.
const END: &str = concat!(
    "data: {\"id\":\"chatcmpl-7\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
    "\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"id\":\"chatcmpl-7\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
    "\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10,\"total_tokens\":1010}}\n\n",
    "data: [DONE]\n\n",
);

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The provider, until it is dropped.
pub(crate) struct Upstream {
    pub(crate) port: u16,
    came: Arc<Mutex<Vec<Came>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upstream {
    /// One that answers whole, or one that never ends its answer.
    pub(crate) async fn open(ends: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let came = Arc::new(Mutex::new(Vec::new()));
        let kept = came.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, kept.clone(), ends));
            }
        });
        Self { port, came, task }
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no panic inside").clone()
    }
}

async fn answer(mut stream: TcpStream, kept: Arc<Mutex<Vec<Came>>>, ends: bool) {
    let mut bytes = Vec::new();
    let came = loop {
        let mut piece = [0; 4096];
        let Ok(count @ 1..) = stream.read(&mut piece).await else {
            return;
        };
        bytes.extend_from_slice(&piece[..count]);
        if let Some(came) = whole(&bytes) {
            break came;
        }
    };
    kept.lock().expect("no panic inside").push(came);
    let _ = stream.write_all(format!("{HEAD}{WORDS}").as_bytes()).await;
    if !ends {
        // Until the other side leaves.
        let _ = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut [0; 1])).await;
        return;
    }
    let _ = stream.write_all(END.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The request, once all of it is there.
fn whole(bytes: &[u8]) -> Option<Came> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let head = head.to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length: "))?;
    let length: usize = length.trim().parse().ok()?;
    let body = body.get(..length)?;
    let body = serde_json::from_str(body).ok()?;
    Some(Came { head, body })
}
