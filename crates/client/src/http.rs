//! HTTP exchanges over a pool of kept-alive connections.
//!
//! A connection returns to the pool only after its response was read completely. A connection that
//! the server has closed in the meantime is replaced. A request is never sent twice: a submit whose
//! response was lost may have been accepted. The caller of a submit with a key can repeat it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::address::ServerAddress;
use crate::error::{Error, Result};
use crate::key::SubmitKey;
use crate::tls::{ExtraAuthorities, Tls};

/// The time limit of one exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// The size limit of a response: a full page of large events.
const RESPONSE_BYTES_MAX: usize = 256 << 20;
/// The largest number of idle connections.
const IDLE_CONNECTIONS_MAX: usize = 16;

/// Bytes to and from a server, with or without TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug> ByteStream for T {}

/// An open connection to a server.
pub(crate) type ServerStream = Box<dyn ByteStream>;

/// A complete response of any status.
#[derive(Debug)]
pub(crate) struct RestResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// The connections to the server at a [`ServerAddress`], and the headers of every request.
pub(crate) struct HttpConnections {
    pub(crate) address: ServerAddress,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// `None` if the address is plain `http`.
    tls: Option<Tls>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl fmt::Debug for HttpConnections {
    /// Without the headers: a token may be among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("HttpConnections");
        debug
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl HttpConnections {
    /// Connections without headers; the certificate of an `https` address may be signed by one of
    /// `authorities` too.
    pub(crate) fn new(address: ServerAddress, authorities: ExtraAuthorities) -> Result<Self> {
        let tls = address.is_tls().then(|| Tls::new(&address, authorities));
        Ok(Self {
            tls: tls.transpose()?,
            address,
            headers: Vec::new(),
            idle: Mutex::default(),
        })
    }

    /// New connections to the same server; `headers` are sent with every request.
    pub(crate) fn with_headers(&self, headers: Vec<(&'static str, String)>) -> Self {
        Self {
            address: self.address.clone(),
            headers,
            tls: self.tls.clone(),
            idle: Mutex::default(),
        }
    }

    /// Sends a request, with its idempotency key if it has one, and reads the complete response.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        key: Option<&SubmitKey>,
    ) -> Result<RestResponse> {
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
        let request = request
            .body(Full::from(body.unwrap_or_default()))
            .map_err(|error| Error::Address(error.to_string()))?;
        tokio::time::timeout(EXCHANGE_TIMEOUT, self.send(request))
            .await
            .unwrap_or(Err(Error::Timeout(EXCHANGE_TIMEOUT)))
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<RestResponse> {
        let mut attempts = 0;
        let (sender, response) = loop {
            let mut sender = self.ready_sender().await?;
            match sender.try_send_request(request).await {
                Ok(response) => break (sender, response),
                // A request that is handed back was not written to the connection at all.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if attempts < IDLE_CONNECTIONS_MAX => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
            attempts += 1;
        };
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| Error::Connection(error.to_string()))?;
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_CONNECTIONS_MAX && !sender.is_closed() {
            idle.push(sender);
        }
        Ok(RestResponse {
            status,
            body: body.to_bytes(),
        })
    }

    /// A connection that is ready for a request: an idle one or a new one.
    async fn ready_sender(&self) -> Result<SendRequest<Full<Bytes>>> {
        // The lock is released before the await.
        while let Some(mut sender) = { self.idle.lock().pop() } {
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
        }
        let (sender, connection) = handshake(TokioIo::new(self.open_stream().await?)).await?;
        // The task ends when the sender is dropped or the server closes; it has no result to await.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// A new connection to the server, with TLS if its address says so.
    pub(crate) async fn open_stream(&self) -> Result<ServerStream> {
        let stream = TcpStream::connect(self.address.target()).await?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(&self.address, stream).await?),
        })
    }
}
