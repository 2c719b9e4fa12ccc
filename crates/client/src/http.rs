//! One HTTP exchange at a time over connections that are kept for the next one.
//!
//! A connection goes back to the shelf only after its answer was read whole; one that the server
//! has closed meanwhile is replaced unseen. Requests are not sent twice: a submit whose answer
//! was lost may have been taken (one with a key can be sent again by whoever gave it the key).

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::address::Address;
use crate::error::Error;
use crate::key::Key;

/// How long an exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(30);
/// How large an answer may be: a full page of large events.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How many idle connections are kept.
const IDLE_MAX: usize = 16;

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its body.
    pub(crate) body: Bytes,
}

/// Connections to one server.
#[derive(Debug)]
pub(crate) struct Http {
    address: Address,
    headers: Vec<(&'static str, String)>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Http {
    /// Connections to `address`, with `headers` on every request.
    pub(crate) fn new(address: Address, headers: Vec<(&'static str, String)>) -> Self {
        Self {
            address,
            headers,
            idle: Mutex::default(),
        }
    }

    /// The server.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The headers of every request.
    pub(crate) fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }

    /// Sends a request, with the key that makes it repeatable if it has one, and reads the answer.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        key: Option<&Key>,
    ) -> Result<Answer, Error> {
        let exchange = self.exchange_unbounded(method, path, body, key);
        match tokio::time::timeout(EXCHANGE_MAX, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Silence(EXCHANGE_MAX)),
        }
    }

    async fn exchange_unbounded(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        key: Option<&Key>,
    ) -> Result<Answer, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.authority())
            .header("accept", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key.to_string());
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let mut request = request
            .body(Full::from(body.unwrap_or_default()))
            .map_err(|error| Error::Address(error.to_string()))?;
        let mut tries = 0;
        let (sender, answer) = loop {
            let mut sender = self.sender().await?;
            match sender.try_send_request(request).await {
                Ok(answer) => break (sender, answer),
                // Handed back means: not a byte of it was written.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if tries < IDLE_MAX => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
            tries += 1;
        };
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| Error::Connection(error.to_string()))?;
        self.put_back(sender);
        Ok(Answer {
            status,
            body: body.to_bytes(),
        })
    }

    /// A connection that can take a request: one from the shelf, or a new one.
    async fn sender(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        loop {
            let idle = self.idle.lock().pop();
            let Some(mut sender) = idle else {
                return self.connect().await;
            };
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        let stream = TcpStream::connect(self.address.authority()).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Ends when the sender is dropped or the server hangs up; either way nothing is owed.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn put_back(&self, sender: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !sender.is_closed() {
            idle.push(sender);
        }
    }
}
