//! The real model answers, in pieces, in each of its three formats, and stops when its caller
//! leaves.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use turnwire_testkit::real::RealModel;

/// The head of an answer is there at once; its body comes as it is generated.
async fn ask(model: &RealModel, path: &str, body: Value) -> (Incoming, JoinHandle<()>) {
    let stream = TcpStream::connect(model.addr())
        .await
        .expect("a connection");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP");
    let connection = tokio::spawn(async move {
        // Ends with the body, or when the test aborts it: neither is of interest.
        let _ = connection.await;
    });
    let request = Request::post(path)
        .header("host", model.addr().to_string())
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    (response.into_body(), connection)
}

fn question(path: &str, tokens: u32) -> Value {
    let words = "Tell me a long story about a tent.";
    let messages = json!([{"role": "user", "content": words}]);
    match path {
        "/v1/responses" => {
            json!({"model": RealModel::NAME, "stream": true, "input": words, "max_output_tokens": tokens})
        }
        _ => {
            json!({"model": RealModel::NAME, "stream": true, "messages": messages, "max_tokens": tokens})
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_model_streams_three_formats_and_stops_on_disconnect() {
    let model = RealModel::start().await;
    for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses"] {
        let (body, connection) = ask(&model, path, question(path, 24)).await;
        let collected = tokio::time::timeout(Duration::from_secs(60), body.collect()).await;
        let bytes = collected.expect("in time").expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let frames = text.lines().filter(|line| line.starts_with("data: "));
        assert!(frames.count() > 8, "{path}: {text}");
        connection.abort();
    }
    assert_eq!(model.stops(), 0);

    let path = "/v1/chat/completions";
    let (mut body, connection) = ask(&model, path, question(path, 2000)).await;
    let first = body.frame().await.expect("a frame").expect("some bytes");
    assert!(first.is_data());
    drop(body);
    connection.abort();
    model.stopped(1).await;
    assert_eq!(model.stops(), 1);
}
