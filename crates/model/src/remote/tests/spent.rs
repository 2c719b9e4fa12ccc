//! What each vendor says of a call's tokens before the call fails, and where a vendor's failure is
//! told to be.

use turnwire_event::port::BoxFuture;

use super::*;
use crate::dialect::anthropic::Anthropic;
use crate::dialect::gemini::Gemini;
use crate::dialect::openai_chat::OpenAiChat;
use crate::dialect::openai_responses::OpenAiResponses;

/// An answer that is all of these bytes and then is over.
struct Cut(&'static str);

impl Transport for Cut {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let all = bytes::Bytes::from_static(self.0.as_bytes());
        let reply = Reply {
            status: 200,
            retry_after: None,
            events: true,
            chunks: futures_util::stream::iter([Ok(all)]).boxed(),
        };
        Box::pin(async move { Ok(reply) })
    }
}

/// How a call ends whose answer is this.
async fn end(dialect: Arc<dyn Dialect>, frames: &'static str) -> (Option<Usage>, ModelError) {
    let (cut, params) = (Arc::new(Cut(frames)), Params::default());
    let remote = Remote::new("local", dialect, cut, params, PATIENT, None);
    let mut told = told(&remote).await;
    let error = told.pop().expect("an end").expect_err("it failed");
    let spent = told.pop().and_then(|last| match last {
        Ok(Delta::Spent { usage }) => Some(usage),
        _ => None,
    });
    (spent, error)
}

fn usage(input_tokens: u64, output_tokens: u64) -> Option<Usage> {
    Some(Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens + output_tokens,
        ..Usage::default()
    })
}

#[tokio::test]
async fn every_vendor_is_asked_what_a_call_that_failed_has_used_up() {
    let messages = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    let chat = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}}\n\n";
    let responses = "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"usage\":{\"input_tokens\":9,\"output_tokens\":1,\"total_tokens\":10}}}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":1,\"totalTokenCount\":10}}\n\n";
    let cases: [(Arc<dyn Dialect>, _, _); 4] = [
        (Arc::new(Anthropic), messages, "no_end"),
        (Arc::new(OpenAiChat), chat, "no_end"),
        (Arc::new(OpenAiResponses), responses, "in_stream_error"),
        (Arc::new(Gemini), gemini, "no_end"),
    ];
    for (dialect, frames, place) in cases {
        let name = dialect.name();
        let (spent, error) = end(dialect, frames).await;
        assert_eq!((spent, error.place), (usage(9, 1), place), "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_from_one_that_says_it_failed() {
    let dialects: [Arc<dyn Dialect>; 4] = [
        Arc::new(Anthropic),
        Arc::new(OpenAiChat),
        Arc::new(OpenAiResponses),
        Arc::new(Gemini),
    ];
    let failed = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"code\":\"server_error\",\"message\":\"no\"}}\n\n";
    for dialect in dialects {
        let name = dialect.name();
        let broken = "event: message_start\ndata: {\"type\":\n\n";
        let unread = match name {
            // Others have no names for their events.
            "anthropic" => broken,
            _ => "data: {\"type\":\n\n",
        };
        let (spent, error) = end(Arc::clone(&dialect), unread).await;
        assert_eq!((spent, error.place), (None, "malformed"), "{name}");
        let (spent, error) = end(dialect, failed).await;
        assert_eq!((spent, error.place), (None, "in_stream_error"), "{name}");
    }
}
