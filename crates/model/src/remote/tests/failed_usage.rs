//! Usage that each vendor reports before a call fails, and the location in the error. All four
//! dialects are covered.

use turnwire_event::port::BoxFuture;

use super::*;
use crate::dialect::anthropic::AnthropicDialect;
use crate::dialect::gemini::GeminiDialect;
use crate::dialect::openai_chat::OpenAiChatDialect;
use crate::dialect::openai_responses::OpenAiResponsesDialect;

/// A transport whose response body is these bytes.
struct FixedBody(&'static str);

impl ModelTransport for FixedBody {
    fn open(
        &self,
        _: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        let body = bytes::Bytes::from_static(self.0.as_bytes());
        let reply = TransportResponse {
            status: 200,
            retry_after: None,
            is_event_stream: true,
            chunks: futures_util::stream::iter([Ok(body)]).boxed(),
        };
        Box::pin(async move { Ok(reply) })
    }
}

/// The usage and the error of a call whose body is `frames`.
async fn failure_of(
    dialect: Arc<dyn VendorDialect>,
    frames: &'static str,
) -> (Option<TokenUsage>, ModelError) {
    let (transport, params) = (Arc::new(FixedBody(frames)), ModelParams::default());
    let remote = RemoteProvider::new("local", dialect, transport, params, NO_TIMEOUT, None);
    let mut items = collect(&remote).await;
    let error = items.pop().expect("an end").expect_err("it failed");
    let usage = |item| match item {
        Ok(Delta::PartialUsage { usage }) => Some(usage),
        _ => None,
    };
    (items.into_iter().rev().find_map(usage), error)
}

fn usage(input_tokens: u64, output_tokens: u64) -> Option<TokenUsage> {
    Some(TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens + output_tokens,
        ..TokenUsage::default()
    })
}

#[tokio::test]
async fn failed_call_reports_usage_of_every_vendor() {
    let messages = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    let chat = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}}\n\n";
    let responses = "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"usage\":{\"input_tokens\":9,\"output_tokens\":1,\"total_tokens\":10}}}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":1,\"totalTokenCount\":10}}\n\n";
    let cases: [(Arc<dyn VendorDialect>, _, _); 4] = [
        (Arc::new(AnthropicDialect), messages, "no_end"),
        (Arc::new(OpenAiChatDialect), chat, "no_end"),
        (
            Arc::new(OpenAiResponsesDialect),
            responses,
            "in_stream_error",
        ),
        (Arc::new(GeminiDialect), gemini, "no_end"),
    ];
    for (dialect, frames, location) in cases {
        let name = dialect.name();
        let (usage_delta, error) = failure_of(dialect, frames).await;
        assert_eq!(
            (usage_delta, error.location),
            (usage(9, 1), location),
            "{name}"
        );
    }
}

#[tokio::test]
async fn malformed_frame_and_error_event_have_own_locations() {
    let dialects: [Arc<dyn VendorDialect>; 4] = [
        Arc::new(AnthropicDialect),
        Arc::new(OpenAiChatDialect),
        Arc::new(OpenAiResponsesDialect),
        Arc::new(GeminiDialect),
    ];
    let failed = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"code\":\"server_error\",\"message\":\"no\"}}\n\n";
    for dialect in dialects {
        let name = dialect.name();
        let broken = "event: message_start\ndata: {\"type\":\n\n";
        let malformed = match name {
            // The other vendors have no event names.
            "anthropic" => broken,
            _ => "data: {\"type\":\n\n",
        };
        let (usage_delta, error) = failure_of(Arc::clone(&dialect), malformed).await;
        assert_eq!((usage_delta, error.location), (None, "malformed"), "{name}");
        let (usage_delta, error) = failure_of(dialect, failed).await;
        assert_eq!(
            (usage_delta, error.location),
            (None, "in_stream_error"),
            "{name}"
        );
    }
}
