//! The fake provider keeps its promises to the tests that stand on it: what it sends is what the
//! script says to the byte, what it refuses a real provider refuses, and its journal tells who
//! came, who left and how much was on its way.

mod caller;
mod refusals;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnwire_testkit::provider::{
    AnswerProgress, BlockOrder, Dialect, ErrorForm, FakeProvider, LineEnding, MessagePart,
    ModelMessage, ProviderAnswer, ProviderError,
};

use caller::{by_hand, headers, path, request, send};

fn message() -> ModelMessage {
    ModelMessage::new([
        MessagePart::text(["Grüße ", "an ", "alle"]),
        MessagePart::call("a", "weather", &json!({"city": "Köln"})),
        MessagePart::call("b", "weather", &json!({"city": "Oslo"})),
    ])
}

#[tokio::test]
async fn response_bytes_equal_scripted_answer() {
    let provider = FakeProvider::start().await;
    for dialect in Dialect::ALL {
        let ways = [
            ProviderAnswer::from(message().id("x")),
            ProviderAnswer::from(message().id("x")).byte_by_byte(),
            ProviderAnswer::from(message().id("x"))
                .with_bom()
                .with_comments(),
            ProviderAnswer::from(message().id("x")).line_end(LineEnding::Cr),
            ProviderAnswer::raw(b"data: {}\r\n\r\ndata: unfinished".to_vec()),
        ];
        for answer in ways {
            provider.push(answer.clone());
            let mut body = request(dialect);
            body["model"] = json!("fake-model");
            let got = send(&provider, dialect, &body).await;
            assert_eq!((got.status, got.whole), (200, true));
            // Made-up ids count the calls; every other byte is equal.
            let call = provider.calls().len() - 1;
            let text = got.text().replace(&format!("{call:04}f4ke"), "0000f4ke");
            let text = text.replace("\"gemini-fake\"", "\"fake-model\"");
            let expected = String::from_utf8(answer.bytes_for(dialect, body)).expect("UTF-8");
            assert_eq!(text, expected, "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn journal_records_request_verbatim() {
    let provider = FakeProvider::start().await;
    provider.always("", ProviderAnswer::text(["hello"]));
    for (number, dialect) in Dialect::ALL.into_iter().enumerate() {
        send(&provider, dialect, &request(dialect)).await;
        let call = provider.reached(number, AnswerProgress::Sent).await;
        assert_eq!(call.dialect, Some(dialect));
        assert_eq!(call.body, request(dialect));
        assert_eq!(call.text, request(dialect).to_string());
        assert_eq!(
            format!("{}?{}", call.path, call.query).trim_end_matches('?'),
            path(dialect)
        );
        for (name, value) in headers(dialect) {
            assert_eq!(call.header(name), value);
        }
        assert_eq!((call.status, call.refused), (Some(200), None));
        assert!(call.written > 0);
    }
    provider.connections_open(0).await;
    assert_eq!(provider.connections(), 4);
}

#[tokio::test]
async fn script_steps_match_by_order_and_request() {
    let provider = FakeProvider::start().await;
    provider.push_if("tents", ProviderAnswer::text(["about tents"]));
    provider.push(ProviderAnswer::text(["first"]));
    provider.push(ProviderAnswer::refuse(ProviderError::Overloaded));
    let ask = async |words: &str| {
        let mut body = request(Dialect::Chat);
        body["messages"][0]["content"] = json!(words);
        send(&provider, Dialect::Chat, &body).await
    };
    assert!(ask("hello").await.text().contains("first"));
    assert!(ask("any tents?").await.text().contains("about tents"));
    assert_eq!(provider.unused_lines(), 1);
    assert_eq!(ask("hello").await.status, 503);
    assert_eq!(ask("hello").await.status, 500);
    let refused = provider.call(3).await.refused.expect("why");
    assert_eq!(refused, "the script has no answer for this request");
}

#[tokio::test]
async fn stalled_answer_resumes_and_tolerates_caller_leaving() {
    let provider = FakeProvider::start().await;
    provider.always("", ProviderAnswer::text(["one", "two"]).stall_at(2));
    for (index, dialect) in [Dialect::Anthropic, Dialect::Chat].into_iter().enumerate() {
        let body = request(dialect);
        let (got, ()) = tokio::join!(send(&provider, dialect, &body), async {
            provider.reached(2 * index, AnswerProgress::Held).await;
            provider.release(2 * index);
        });
        assert!(got.whole && got.text().contains("two"), "{}", got.text());

        let caller = by_hand(&provider, dialect).await;
        let stalled = provider.reached(2 * index + 1, AnswerProgress::Held).await;
        assert!(!stalled.closed && stalled.written > 0);
        drop(caller);
        let closed = provider.closed(2 * index + 1).await;
        assert_eq!(closed.progress, AnswerProgress::Left);
    }
}

#[tokio::test]
async fn silent_answer_sends_no_head() {
    let provider = FakeProvider::start().await;
    provider.push(ProviderAnswer::text(["late"]).silent());
    let mut caller = by_hand(&provider, Dialect::Gemini).await;
    let stalled = provider.reached(0, AnswerProgress::Held).await;
    assert_eq!(stalled.status, None);
    assert_eq!(caller.try_read(&mut [0; 1]).ok(), None);
    provider.release(0);
    let mut start = [0; 15];
    caller.read_exact(&mut start).await.expect("the head");
    assert_eq!(&start, b"HTTP/1.1 200 OK");
}

#[tokio::test]
async fn stream_is_cut_where_scripted() {
    let provider = FakeProvider::start().await;
    for dialect in Dialect::ALL {
        let mut body = request(dialect);
        body["model"] = json!("fake-model");
        let complete = ProviderAnswer::text(["Grüße"]).bytes_for(dialect, body.clone());
        let umlaut = complete
            .iter()
            .position(|byte| *byte >= 0xC0)
            .expect("an ü");
        let cuts = [
            (ProviderAnswer::text(["Grüße"]).cut_after(100), 100),
            (
                ProviderAnswer::text(["Grüße"]).cut_inside_character(),
                umlaut + 1,
            ),
            (ProviderAnswer::text(["Grüße"]).cut_after(0), 0),
        ];
        for (answer, length) in cuts {
            provider.push(answer);
            let got = send(&provider, dialect, &body).await;
            assert_eq!((got.bytes.len(), got.whole), (length, false), "{dialect:?}");
            let call = provider.calls().len() - 1;
            assert_eq!(provider.closed(call).await.progress, AnswerProgress::Cut);
        }
        provider.push(ProviderAnswer::text(["Grüße"]).cut_inside(1).with_reset());
        assert!(!send(&provider, dialect, &body).await.whole);
    }
}

#[tokio::test]
async fn unread_endless_answer_is_backpressured() {
    let provider = FakeProvider::start().await;
    provider.always("", ProviderAnswer::text(["again and again"]).endless());
    for (number, dialect) in Dialect::ALL.into_iter().enumerate() {
        let mut caller = by_hand(&provider, dialect).await;
        let still = provider.still(number).await;
        // The kernel's buffers on both sides, and no more.
        assert!(still.written < 32 << 20, "{}", still.written);
        assert_eq!(provider.open_connections(), 1);
        let mut start = vec![0; 64 << 10];
        caller.read_exact(&mut start).await.expect("much of it");
        let times = String::from_utf8_lossy(&start)
            .matches("again and again")
            .count();
        assert!(times > 50, "{dialect:?}: {times}");
        drop(caller);
        assert_eq!(provider.closed(number).await.progress, AnswerProgress::Left);
    }
}

#[tokio::test]
async fn missing_stream_end_is_missing_in_every_format() {
    let marks = [
        (Dialect::Anthropic, "message_stop"),
        (Dialect::Chat, "[DONE]"),
        (Dialect::Responses, "response.completed"),
        (Dialect::Gemini, "finishReason"),
    ];
    for (dialect, mark) in marks {
        let text =
            |answer: ProviderAnswer| String::from_utf8(answer.bytes(dialect)).expect("UTF-8");
        assert!(text(message().into()).contains(mark));
        let cut = text(ProviderAnswer::from(message()).without_end());
        assert!(!cut.contains(mark), "{cut}");
        assert!(!cut.contains("\"finish_reason\":\"tool_calls\""), "{cut}");
        assert!(cut.contains("Osl"), "what was said stays: {cut}");
    }
}

#[tokio::test]
async fn stream_errors_use_provider_format() {
    let says = |dialect, form, word: &str| {
        let answer = ProviderAnswer::from(message()).error_as(2, ProviderError::Overloaded, form);
        let text = String::from_utf8(answer.bytes(dialect)).expect("UTF-8");
        let last = text.trim_end().rsplit("data: ").next().unwrap_or_default();
        assert!(last.contains(word), "{last}");
    };
    let event = ErrorForm::Event;
    says(Dialect::Anthropic, event, "\"type\":\"overloaded_error\"");
    says(Dialect::Chat, event, "{\"error\":{\"message\"");
    says(
        Dialect::Responses,
        event,
        "\"code\":\"server_is_overloaded\"",
    );
    says(Dialect::Responses, ErrorForm::Nested, "\"error\":{\"type\"");
    says(
        Dialect::Responses,
        ErrorForm::Failed,
        "\"status\":\"failed\"",
    );
    says(Dialect::Gemini, event, "\"status\": \"UNAVAILABLE\"");
}

#[tokio::test]
async fn blocks_arrive_in_requested_order() {
    let indices = |dialect, order, field: &str| -> Vec<u64> {
        let bytes = ProviderAnswer::from(message().order(order)).bytes(dialect);
        let text = String::from_utf8(bytes).expect("UTF-8");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let frames = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let mut seen: Vec<u64> = frames
            .filter_map(|frame| frame.pointer(field).and_then(Value::as_u64))
            .collect();
        seen.dedup();
        seen
    };
    let chat = "/choices/0/delta/tool_calls/0/index";
    for (dialect, field) in [
        (Dialect::Anthropic, "/index"),
        (Dialect::Responses, "/output_index"),
    ] {
        assert_eq!(indices(dialect, BlockOrder::InTurn, field), [0, 1, 2]);
        assert_eq!(indices(dialect, BlockOrder::Backwards, field), [2, 1, 0]);
        assert!(indices(dialect, BlockOrder::Interleaved, field).len() > 9);
    }
    assert_eq!(indices(Dialect::Chat, BlockOrder::InTurn, chat), [0, 1]);
    assert_eq!(indices(Dialect::Chat, BlockOrder::Backwards, chat), [1, 0]);
    assert_eq!(
        indices(Dialect::Chat, BlockOrder::Interleaved, chat),
        [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    );
}

#[tokio::test]
async fn connection_serves_many_calls() {
    let provider = FakeProvider::start().await;
    provider.always("", ProviderAnswer::text(["again"]));
    let mut caller = by_hand(&provider, Dialect::Chat).await;
    for number in 0..3 {
        provider.reached(number, AnswerProgress::Sent).await;
        let mut seen = Vec::new();
        while !seen.ends_with(b"0\r\n\r\n") {
            assert!(caller.read_buf(&mut seen).await.expect("bytes") > 0);
        }
        if number < 2 {
            let body = request(Dialect::Chat).to_string();
            let head = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer k\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            );
            caller.write_all(head.as_bytes()).await.expect("it is sent");
        }
    }
    assert_eq!(
        (provider.connections(), provider.open_connections()),
        (1, 1)
    );
}

#[tokio::test]
async fn slow_answer_is_complete() {
    let provider = FakeProvider::start().await;
    let slow = ProviderAnswer::text(["one", "two"])
        .head_after(Duration::from_millis(5))
        .frames_every(Duration::from_millis(2));
    provider.push(slow);
    provider.push(ProviderAnswer::raw(b"data: {}\n\n".to_vec()).drip(Duration::from_millis(1)));
    let got = send(&provider, Dialect::Responses, &request(Dialect::Responses)).await;
    assert!(got.whole && got.text().contains("onetwo"), "{}", got.text());
    let got = send(&provider, Dialect::Chat, &request(Dialect::Chat)).await;
    assert_eq!(got.bytes, b"data: {}\n\n");
}

#[tokio::test]
async fn gemini_call_id_appears_only_when_scripted() {
    let text = |id| {
        let call = MessagePart::call_in(id, "weather", ["{\"city\":", "\"Oslo\"}"]);
        let bytes = ProviderAnswer::from(ModelMessage::new([call])).bytes(Dialect::Gemini);
        String::from_utf8(bytes).expect("UTF-8")
    };
    assert!(text(Some("c1")).contains("\"id\": \"c1\""));
    let without = text(None);
    assert!(!without.contains("\"id\""), "{without}");
    assert!(without.contains("{\"name\": \"weather\",\"args\": {\"city\": \"Oslo\"}}"));
    assert!(without.ends_with("}\r\n\r\n"), "{without}");
}
