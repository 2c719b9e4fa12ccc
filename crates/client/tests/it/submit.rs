//! A submit with a key, sent again after its answer was lost: the same bytes, the same key.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use turnwire_client::{Client, Error, Key};
use turnwire_event::code::TurnState;
use turnwire_event::{Epoch, Position, SessionId, TurnId, Ulid};
use turnwire_wire::rest::turn::{Accepted, Submit};

const SESSION: SessionId = SessionId(Ulid(7));

/// Takes a request whole: its head without what differs by connection, and its body.
async fn take(stream: &mut TcpStream) -> (Vec<String>, String) {
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
async fn a_submit_whose_answer_was_lost_is_sent_again_with_its_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = Client::new(&format!("http://{address}")).expect("an address");
    let accepted = Accepted {
        turn_id: TurnId(Ulid(2)),
        response_id: TurnId(Ulid(2)).into(),
        state: TurnState::Running,
        position: Position::persisted(Epoch::FIRST, turnwire_event::Seq(1)),
    };
    let answer = json!(accepted).to_string();
    let server = async {
        let (mut lost, _) = listener.accept().await.expect("a client");
        let first = take(&mut lost).await;
        drop(lost);
        let (mut kept, _) = listener.accept().await.expect("a client");
        let second = take(&mut kept).await;
        let head = format!(
            "HTTP/1.1 202 Accepted\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let whole = format!("{head}{answer}");
        kept.write_all(whole.as_bytes()).await.expect("an answer");
        (first, second)
    };
    let key = Key::random().expect("randomness");
    let submit = Submit::text("once");
    let twice = async {
        let first = client.submit_once(SESSION, &submit, &key).await;
        (first, client.submit_once(SESSION, &submit, &key).await)
    };
    let ((first, second), (lost, kept)) = tokio::join!(twice, server);
    assert!(matches!(first, Err(Error::Connection(_))), "{first:?}");
    assert_eq!(second.expect("an answer"), accepted);
    assert_eq!(lost, kept);
    assert!(
        kept.0.contains(&format!("idempotency-key: {key}")),
        "{kept:?}"
    );
}
