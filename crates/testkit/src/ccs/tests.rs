//! The service says what it is told to say and remembers who asked.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const SOON: Duration = Duration::from_secs(5);

async fn ask(socket: &mut TcpStream, enricher: &str) {
    let body = json!({"principal": "user-42", "enricher_id": enricher, "params": {"q": 1}});
    let body = body.to_string();
    let length = body.len();
    let head = format!("POST /v1/enrich HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
    socket
        .write_all((head + &body).as_bytes())
        .await
        .expect("sent");
}

async fn hear(socket: &mut TcpStream) -> String {
    let mut buffer = vec![0; 65_536];
    let n = socket.read(&mut buffer).await.unwrap_or(0);
    String::from_utf8_lossy(&buffer[..n]).into_owned()
}

async fn connect(ccs: &Ccs) -> TcpStream {
    TcpStream::connect(ccs.addr).await.expect("a connection")
}

#[tokio::test]
async fn it_answers_in_turn_and_the_last_again_and_again_on_one_connection() {
    let ccs = Ccs::start().await;
    let partial = changed("offer_search", &json!({"status": "partial"}));
    ccs.set_all(
        "offer_search",
        vec![
            Reply::envelope(&partial),
            Reply::refusal(403, "principal_mismatch"),
        ],
    );
    let mut socket = connect(&ccs).await;
    for expected in ["\"partial\"", "principal_mismatch", "principal_mismatch"] {
        ask(&mut socket, "offer_search").await;
        assert!(hear(&mut socket).await.contains(expected));
    }
    ask(&mut socket, "nobody").await;
    assert!(hear(&mut socket).await.starts_with("HTTP/1.1 404"));
    ccs.quiet(SOON).await;
    let calls = ccs.calls();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[0].principal(), "user-42");
    assert!(calls[0].head.starts_with("POST /v1/enrich"));
    assert!(
        calls
            .iter()
            .all(|call| call.answered >= Some(call.arrived) && !call.cut)
    );
    assert_eq!(
        ccs.params("offer_search"),
        [json!({"q": 1}), json!({"q": 1}), json!({"q": 1})]
    );
    assert_eq!(ccs.take().len(), 4);
    assert!(ccs.calls().is_empty());
}

#[tokio::test]
async fn a_caller_that_leaves_is_seen() {
    let ccs = Ccs::start().await;
    ccs.set("points", Reply::silence());
    let mut socket = connect(&ccs).await;
    ask(&mut socket, "points").await;
    ccs.asked(1, SOON).await;
    assert!(!ccs.calls()[0].is_over());
    drop(socket);
    ccs.quiet(SOON).await;
    assert!(ccs.calls()[0].cut);
}

#[tokio::test]
async fn it_can_be_slow_hang_up_and_be_gone() {
    let ccs = Ccs::start().await;
    ccs.set(
        "points",
        Reply::raw(b"abcdef".to_vec()).after(10).slowly(4, 20),
    );
    let mut socket = connect(&ccs).await;
    ask(&mut socket, "points").await;
    assert_eq!(hear(&mut socket).await, "abcd");
    assert_eq!(hear(&mut socket).await, "ef");
    assert_eq!(hear(&mut socket).await, "");
    ccs.set("points", Reply::hang_up());
    let mut socket = connect(&ccs).await;
    ask(&mut socket, "points").await;
    assert_eq!(hear(&mut socket).await, "");
    let mut idle = connect(&ccs).await;
    ask(&mut idle, "offer_search").await;
    assert!(hear(&mut idle).await.contains("OFF_1"));
    ccs.stop();
    assert_eq!(hear(&mut idle).await, "", "open connections go too");
    assert!(TcpStream::connect(ccs.addr).await.is_err());
}

#[test]
fn every_field_can_be_marked() {
    let mut marks = Vec::new();
    let envelope = marked("offer_search", |field| {
        marks.push(format!("M{}", marks.len()));
        assert!(!field.is_empty());
        marks[marks.len() - 1].clone()
    });
    assert_eq!(marks.len(), 7);
    let text = envelope.to_string();
    assert!(marks.iter().all(|mark| text.contains(mark.as_str())));
}
