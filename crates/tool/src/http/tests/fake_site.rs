//! An HTTP server that records its requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Sends the bytes of `respond` for each request, then closes the connection.
pub(super) struct FakeSite {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeSite {
    pub(super) async fn open(respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = request(&mut socket).await else {
                    continue;
                };
                let response = respond(&request);
                log.lock().expect("one at a time").push(request);
                let _ = socket.write_all(&response).await;
            }
        });
        Self { url, requests }
    }

    pub(super) async fn with_response(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::open(move |_| response.clone()).await
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("one at a time").clone()
    }
}

/// Reads one request: the head, and the body by its content length.
pub(super) async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |digits| digits.parse().expect("a length"));
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut buffer = [0; 4_096];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        text.push_str(std::str::from_utf8(&buffer[..n]).expect("text"));
    }
}
