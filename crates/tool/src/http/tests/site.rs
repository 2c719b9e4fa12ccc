//! A site of any pages, which remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers each request with what `says` makes of it, byte by byte as it is, then closes.
pub(super) struct Site {
    pub(super) url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(super) async fn open(says: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = request(&mut socket).await else {
                    continue;
                };
                let answer = says(&request);
                kept.lock().expect("one at a time").push(request);
                let _ = socket.write_all(&answer).await;
            }
        });
        Self { url, heard }
    }

    pub(super) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::open(move |_| answer.clone()).await
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("one at a time").clone()
    }
}

/// Reads one request: head, and as many bytes as it promises.
pub(super) async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut seen = String::new();
    loop {
        if let Some((head, body)) = seen.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |digits| digits.parse().expect("a length"));
            if body.len() >= length {
                return Some(seen);
            }
        }
        let mut buffer = [0; 4_096];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        seen.push_str(std::str::from_utf8(&buffer[..n]).expect("text"));
    }
}
