//! Agents that run elsewhere: a server in front of an upstream that does as it likes.

mod vocabulary;
mod response_ids;
mod endings;
mod stops;
mod packs;
mod chat_api;
mod examples;

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::upstream::{FakeUpstream, UpstreamStep};

/// A server in front of an upstream that answers with these steps.
async fn relay(steps: Vec<UpstreamStep>) -> (FakeUpstream, ServerFixture) {
    relay_with(steps, |options| options).await
}

/// Like [`relay`], with other settings.
async fn relay_with(
    steps: Vec<UpstreamStep>,
    set: impl FnOnce(ServerOptions) -> ServerOptions,
) -> (FakeUpstream, ServerFixture) {
    let upstream = FakeUpstream::start(steps).await;
    let options = ServerOptions::default().set("relay", "upstream", upstream.url());
    let fixture = ServerFixture::new(set(options)).await;
    (upstream, fixture)
}

fn text(content: &str) -> Value {
    json!({"type": "text", "content": content})
}

fn response_id(id: &str) -> Value {
    json!({"type": "response_id", "response_id": id})
}

fn completed() -> Value {
    json!({"type": "completed"})
}
