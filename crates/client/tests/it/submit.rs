//! A submit with a key, repeated after its response was lost: the same bytes, the same key.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use turnwire_client::{Client, Error, SubmitKey};
use turnwire_event::code::TurnState;
use turnwire_event::{Epoch, Position, SessionId, TurnId, Ulid};
use turnwire_wire::rest::turn::{TurnAccepted, TurnSubmit};

const SESSION: SessionId = SessionId(Ulid(7));

/// Reads a complete request: the head, without what differs by connection, and the body.
async fn read_request(stream: &mut TcpStream) -> (Vec<String>, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head: Vec<_> = head.lines().map(str::to_lowercase).collect();
            let length = head
                .iter()
                .find_map(|line| line.strip_prefix("content-length: "));
            if length.and_then(|length| length.parse().ok()) == Some(body.len()) {
                return (head, body.to_owned());
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.expect("a request"), 0);
    }
}

#[tokio::test]
async fn submit_with_lost_response_is_repeated_with_its_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = Client::new(&format!("http://{address}")).expect("an address");
    let accepted = TurnAccepted {
        turn_id: TurnId(Ulid(2)),
        response_id: TurnId(Ulid(2)).into(),
        state: TurnState::Running,
        position: Position::persisted(Epoch::FIRST, turnwire_event::Seq(1)),
        outcome: None,
    };
    let body = json!(accepted).to_string();
    let server = async {
        let (mut first_socket, _) = listener.accept().await.expect("a client");
        let first = read_request(&mut first_socket).await;
        drop(first_socket);
        let (mut second_socket, _) = listener.accept().await.expect("a client");
        let second = read_request(&mut second_socket).await;
        let head = format!(
            "HTTP/1.1 202 Accepted\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let response = format!("{head}{body}");
        second_socket
            .write_all(response.as_bytes())
            .await
            .expect("an answer");
        (first, second)
    };
    let key = SubmitKey::random().expect("randomness");
    let submit = TurnSubmit::text("once");
    let submits = async {
        let first = client.submit_once(SESSION, &submit, &key).await;
        (first, client.submit_once(SESSION, &submit, &key).await)
    };
    let ((first, second), (first_socket, second_socket)) = tokio::join!(submits, server);
    assert!(matches!(first, Err(Error::Connection(_))), "{first:?}");
    assert_eq!(second.expect("an answer"), accepted);
    assert_eq!(first_socket, second_socket);
    assert!(
        second_socket.0.contains(&format!("idempotency-key: {key}")),
        "{second_socket:?}"
    );
}
