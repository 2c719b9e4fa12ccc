//! A test server with arbitrary pages that records the requests it receives.

use std::sync::Mutex;

use super::*;

/// A server that answers each request with the output of `respond`, then closes.
pub(super) struct Site {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(super) async fn open(respond: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (kept, respond) = (Arc::clone(&requests), Arc::new(respond));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (kept, respond) = (Arc::clone(&kept), Arc::clone(&respond));
                tokio::spawn(async move {
                    let Some(request) = read_complete_request(&mut socket).await else {
                        return;
                    };
                    let answer = respond(&request);
                    kept.lock().expect("one at a time").push(request);
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port, requests }
    }

    pub(super) fn url(&self, host: &str, path: &str) -> Url {
        let text = format!("http://{host}:{}{path}", self.port);
        text.parse().expect("a url")
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("one at a time").clone()
    }
}

/// Reads one request: its head, and as many bytes as the head declares.
pub(super) async fn read_complete_request(socket: &mut TcpStream) -> Option<String> {
    let mut seen = String::new();
    loop {
        if let Some((head, body)) = seen.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| {
                let digits = rest.lines().next().expect("a line");
                digits.parse().expect("a length")
            });
            if body.len() >= length {
                return Some(seen);
            }
        }
        let mut buffer = [0; 1_024];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        seen.push_str(std::str::from_utf8(&buffer[..n]).expect("text"));
    }
}
