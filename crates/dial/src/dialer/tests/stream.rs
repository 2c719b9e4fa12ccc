//! Streamed responses over real sockets, with clients that read slowly, not at all, or close.

use futures_util::StreamExt as _;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;

use super::*;
use crate::headers::RequestHeaders;

/// Far longer than any step of these tests: a wait that reaches it has failed.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";

fn outgoing(url: &Url) -> HttpRequest {
    HttpRequest {
        headers: RequestHeaders::new([("x-api-key", "sk-secret")]).expect("headers"),
        accept: "text/event-stream".into(),
        body: Some(Bytes::from_static(b"{}")),
        connect: LONG,
        timeout: LONG,
        max_bytes: usize::MAX,
        redirects_max: None,
        ..HttpRequest::new(HttpMethod::Post, url.clone())
    }
}

async fn open(url: &Url) -> Result<StreamingResponse, DialError> {
    dialer().send_streaming(outgoing(url)).await
}

async fn listen() -> (TcpListener, Url) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!(
        "http://{}/v1/messages",
        listener.local_addr().expect("bound")
    );
    (listener, url.parse().expect("a url"))
}

/// All chunks of a body joined, and the error that ended it.
async fn read_all(mut incoming: StreamingResponse) -> (String, Option<DialError>) {
    let mut body = String::new();
    while let Some(chunk) = incoming.next().await {
        match chunk {
            Ok(chunk) => body.push_str(std::str::from_utf8(&chunk).expect("text")),
            Err(error) => {
                assert!(incoming.next().await.is_none(), "nothing follows an error");
                return (body, Some(error));
            }
        }
    }
    (body, None)
}

/// True if the client closes the connection within the limit, by FIN or reset.
async fn closed(socket: &mut TcpStream) -> bool {
    let closed_by_client = async {
        let mut buffer = [0; 1_024];
        while !matches!(socket.read(&mut buffer).await, Ok(0) | Err(_)) {}
    };
    tokio::time::timeout(LONG, closed_by_client).await.is_ok()
}

#[tokio::test]
async fn stream_request_accepts_events_and_sends_headers() {
    let (listener, url) = listen().await;
    let received_request = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let received_request = read_request(&mut socket).await.expect("a request");
        socket.write_all(HEAD.as_bytes()).await.expect("written");
        socket.write_all(b"0\r\n\r\n").await.expect("written");
        received_request.to_ascii_lowercase()
    });
    let incoming = open(&url).await.expect("an answer");
    assert_eq!(incoming.status(), 200);
    assert_eq!(incoming.header("Content-Type"), Some("text/event-stream"));
    assert_eq!(incoming.header("retry-after"), None);
    assert_eq!(read_all(incoming).await, (String::new(), None));
    let received_request = received_request.await.expect("heard");
    assert!(
        received_request.starts_with("post /v1/messages http/1.1\r\n"),
        "{received_request}"
    );
    for line in [
        "content-type: application/json\r\n",
        "accept: text/event-stream\r\n",
        "accept-encoding: identity\r\n",
        "x-api-key: sk-secret\r\n",
    ] {
        assert_eq!(
            received_request.matches(line).count(),
            1,
            "{line} in {received_request}"
        );
    }
}

// G6
#[tokio::test]
async fn debug_output_of_stream_request_hides_header_values() {
    let (_listener, url) = listen().await;
    let debug_output = format!("{:?}", outgoing(&url));
    assert!(debug_output.contains("x-api-key"), "{debug_output}");
    assert!(!debug_output.contains("sk-secret"), "{debug_output}");
}

#[tokio::test]
async fn chunks_arrive_as_sent_and_connection_is_reused() {
    let head = HEAD.replace("transfer", "connection: keep-alive\r\ntransfer");
    let parts = [head.as_str(), "2\r\nhi\r\n", "6\r\n there\r\n", "0\r\n\r\n"];
    let (url, connections) = server(&parts, Duration::ZERO).await;
    let dialer = dialer();
    for _ in 0..5 {
        let incoming = dialer
            .send_streaming(outgoing(&url))
            .await
            .expect("an answer");
        assert_eq!(read_all(incoming).await, ("hi there".into(), None));
    }
    // A task returns the connection to the pool, possibly after the next request has started.
    assert!(connections.load(Ordering::Relaxed) < 5);
}

// G5
#[tokio::test]
async fn stream_requests_pass_the_same_checks() {
    let (inside, visits) = server(&[HEAD, "0\r\n\r\n"], Duration::ZERO).await;
    let redirect = format!("HTTP/1.1 307 Go\r\nlocation: {inside}\r\ncontent-length: 0\r\n\r\n");
    let (url, _) = server(&[&redirect], Duration::ZERO).await;
    let incoming = open(&url).await.expect("an answer");
    assert_eq!(incoming.status(), 307);
    assert_eq!(visits.load(Ordering::Relaxed), 0);

    let packed = HEAD.replace("transfer", "content-encoding: gzip\r\ntransfer");
    let (url, _) = server(&[&packed, "0\r\n\r\n"], Duration::ZERO).await;
    assert_eq!(
        open(&url).await.map(|_| ()),
        Err(DialError::UnexpectedEncoding)
    );

    for url in [
        "http://169.254.169.254/v1",
        "http://user:secret@127.0.0.1/",
        "ftp://127.0.0.1/",
        "data:,x",
    ] {
        let url: Url = url.parse().expect("a url");
        assert_eq!(
            open(&url).await.map(|_| ()),
            Err(DialError::Refused),
            "{url}"
        );
    }
}

// G5
#[tokio::test]
async fn allow_rule_for_host_permits_no_other_host() {
    let (url, visits) = server(&[HEAD, "0\r\n\r\n"], Duration::ZERO).await;
    let port = url.port().expect("a port");
    let url_for = |host: &str| -> Url {
        let text = format!("http://{host}:{port}/v1");
        text.parse().expect("a url")
    };
    let own = AllowRule::for_host_of(&url_for("models.internal")).expect("a host");
    let dialer = |address: &str| {
        let lookup = FixedLookup(vec![address.parse().expect("an address")]);
        let allow = vec![own.clone()];
        Dialer::with_lookup(DialerOptions { allow }, Arc::new(lookup)).expect("a dialer")
    };
    let ask = async |address: &str, host: &str| {
        let result = dialer(address)
            .send_streaming(outgoing(&url_for(host)))
            .await;
        result.map(|incoming| incoming.status())
    };
    let refused = Err(DialError::Refused);
    assert_eq!(ask("127.0.0.1", "evil.internal").await, refused);
    assert_eq!(ask("169.254.169.254", "models.internal").await, refused);
    assert_eq!(ask("fd00:ec2::254", "models.internal").await, refused);
    assert_eq!(visits.load(Ordering::Relaxed), 0);
    assert_eq!(ask("127.0.0.1", "models.internal").await, Ok(200));
    assert_eq!(ask("127.0.0.1", "localhost").await, Ok(200));
}

#[tokio::test]
async fn truncated_body_yields_one_error_and_ends() {
    let (url, _) = server(&[HEAD, "2\r\nhi\r\n", "5\r\nth"], Duration::ZERO).await;
    let (body, error) = read_all(open(&url).await.expect("an answer")).await;
    assert!("hith".starts_with(&body), "{body}");
    assert_eq!(error, Some(DialError::Unreachable));
}

#[tokio::test]
async fn dropping_the_response_closes_an_idle_connection() {
    let (listener, url) = listen().await;
    let mut incoming = Box::pin(open(&url));
    let mut socket = tokio::select! {
        accepted = listener.accept() => accepted.expect("a client").0,
        early = &mut incoming => panic!("{early:?}"),
    };
    let talk = async {
        read_request(&mut socket).await.expect("a request");
        socket.write_all(HEAD.as_bytes()).await.expect("written");
        socket.write_all(b"2\r\nhi\r\n").await.expect("written");
    };
    let ((), incoming) = tokio::join!(talk, incoming);
    let mut incoming = incoming.expect("an answer");
    let first = incoming.next().await.expect("a piece").expect("bytes");
    assert_eq!(first, "hi");
    drop(incoming);
    assert!(closed(&mut socket).await);
}

#[tokio::test]
async fn dropping_the_request_before_head_closes_connection() {
    let (listener, url) = listen().await;
    let asking = tokio::spawn(async move { open(&url).await.map(|_| ()) });
    let (mut socket, _) = listener.accept().await.expect("a client");
    read_request(&mut socket).await.expect("a request");
    asking.abort();
    assert!(closed(&mut socket).await);
}

/// Waits until a count stops growing, and returns it.
async fn settled(mut counts: mpsc::UnboundedReceiver<usize>) -> usize {
    let mut last = 0;
    while let Ok(Some(count)) = tokio::time::timeout(10 * SHORT, counts.recv()).await {
        last = count;
    }
    last
}

#[tokio::test]
async fn unread_body_stays_with_the_sender() {
    const CHUNKS: usize = 1_024;
    const CHUNK: usize = 65_536;
    // The socket buffers of both sides, and one read of the client.
    const HELD_MAX: usize = 8 * 1_048_576;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(65_536).expect("a small buffer");
    let any = "127.0.0.1:0".parse().expect("an address");
    socket.bind(any).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let (count, counts) = mpsc::unbounded_channel();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        read_request(&mut socket).await.expect("a request");
        socket.write_all(HEAD.as_bytes()).await.expect("written");
        let chunk = format!("{CHUNK:x}\r\n{}\r\n", "x".repeat(CHUNK));
        for n in 1..=CHUNKS {
            socket.write_all(chunk.as_bytes()).await.expect("written");
            let _ = count.send(n * CHUNK);
        }
        socket.write_all(b"0\r\n\r\n").await.expect("written");
    });
    let mut incoming = open(&url.parse().expect("a url")).await.expect("an answer");
    let first = incoming.next().await.expect("a piece").expect("bytes");
    // The complete body is eight times larger than the part that may be sent unread.
    let written = settled(counts).await;
    assert!(written < HELD_MAX, "{written} bytes left while nobody read");
    let mut read = first.len();
    while let Some(chunk) = incoming.next().await {
        read += chunk.expect("bytes").len();
    }
    assert_eq!(read, CHUNKS * CHUNK);
    server.await.expect("all written");
}

#[tokio::test]
async fn missing_response_head_times_out() {
    let (_listener, url) = listen().await;
    let mut slow_request = outgoing(&url);
    slow_request.timeout = SHORT;
    let result = tokio::time::timeout(LONG, dialer().send_streaming(slow_request)).await;
    assert_eq!(
        result.map(|result| result.map(|_| ())),
        Ok(Err(DialError::Timeout))
    );
}

/// A lookup that blocks until the test releases it.
struct Waits(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl HostLookup for Waits {
    fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        let _ = self.0.lock().expect("one waits").recv();
        Err(std::io::ErrorKind::NotFound.into())
    }
}

#[tokio::test]
async fn connect_timeout_covers_lookup_and_handshake() {
    // The name is never resolved.
    let (let_go, wait) = std::sync::mpsc::channel();
    let lookup = Arc::new(Waits(std::sync::Mutex::new(wait)));
    let with_lookup = Dialer::with_lookup(DialerOptions::default(), lookup).expect("a dialer");
    let mut slow_request = outgoing(&"http://models.example/".parse().expect("a url"));
    slow_request.connect = SHORT;
    let result = tokio::time::timeout(LONG / 2, with_lookup.send_streaming(slow_request)).await;
    assert_eq!(
        result.map(|result| result.map(|_| ())),
        Ok(Err(DialError::ConnectTimeout))
    );
    drop(let_go);
    // The TLS handshake never completes.
    let (_listener, url) = listen().await;
    let secure = url.as_str().replace("http", "https");
    let mut slow_request = outgoing(&secure.parse().expect("a url"));
    slow_request.connect = SHORT;
    let result = tokio::time::timeout(LONG / 2, dialer().send_streaming(slow_request)).await;
    assert_eq!(
        result.map(|result| result.map(|_| ())),
        Ok(Err(DialError::ConnectTimeout))
    );
}

#[tokio::test]
async fn connect_timeout_does_not_limit_the_response() {
    let (listener, url) = listen().await;
    let mut patient = outgoing(&url);
    patient.connect = 5 * SHORT;
    let asking = tokio::spawn(async move { dialer().send_streaming(patient).await.map(|_| ()) });
    let (mut socket, _) = listener.accept().await.expect("a client");
    read_request(&mut socket).await.expect("a request");
    tokio::time::sleep(10 * SHORT).await;
    socket.write_all(HEAD.as_bytes()).await.expect("written");
    assert_eq!(asking.await.expect("it ran"), Ok(()));
}
