//! Calls over real sockets: [`TestServer`] sends whatever a test needs, byte by byte, in a small
//! dialect of the tests' own.

mod answers;
mod properties;
mod failures;
mod failed_usage;
mod test_dialect;
mod test_server;
mod timeouts;
mod vendor_frames;

use futures_util::StreamExt as _;
use serde_json::json;
use turnwire_dial::{Dialer, DialerOptions};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{ContentBlock, Role, StopReason};

use super::*;
use crate::delta::{Delta, ModelError, RetryHint};
use crate::request::ModelMessage;
use crate::secret::ApiKey;
use test_dialect::TestDialect;
use test_server::{ServerStep, TestServer};

/// Far longer than any test takes: a wait that ends with it has failed.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);
/// Timeouts that no test reaches.
const NO_TIMEOUT: CallTimeouts = {
    let hour = Duration::from_secs(3_600);
    CallTimeouts {
        connect: hour,
        first_byte: hour,
        idle: hour,
        silence: hour,
        total: hour,
    }
};
const KEY: &str = "sk-very-secret";

fn request() -> ModelRequest {
    let message = ModelMessage::new(Role::User, vec![ContentBlock::text("hello")]);
    ModelRequest {
        attempt: 1,
        model: "local:big:8b".into(),
        agent: "shop".into(),
        call: 2,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(message)],
        tools: [].into(),
    }
}

fn http_transport(base: &str, timeouts: &CallTimeouts) -> Arc<ModelHttpTransport> {
    let dialer = Arc::new(Dialer::new(DialerOptions::default()).expect("a dialer"));
    let key = ApiKey::from_variable("KEY", Some(KEY.into())).expect("a key");
    let team = BTreeMap::from([("x-team".to_owned(), "market".to_owned())]);
    let http_transport =
        ModelHttpTransport::new(dialer, base, &TestDialect, Some(&key), &team, timeouts);
    Arc::new(http_transport.expect("a provider"))
}

fn remote(base: &str, timeouts: CallTimeouts) -> RemoteProvider {
    let transport = http_transport(base, &timeouts);
    let params = ModelParams::default();
    RemoteProvider::new(
        "local",
        Arc::new(TestDialect),
        transport,
        params,
        timeouts,
        None,
    )
}

type DeltaResults = Vec<Result<Delta, ModelError>>;

/// All items of a call's stream, which must end by itself.
async fn collect(remote: &RemoteProvider) -> DeltaResults {
    let items = remote.stream(request()).collect();
    tokio::time::timeout(LONG, items).await.expect("it ends")
}

/// All items of a call's stream from a server that performs `steps`.
async fn collect_steps(steps: Vec<ServerStep>, timeouts: CallTimeouts) -> DeltaResults {
    let test_server = TestServer::start(steps).await;
    collect(&remote(&test_server.base, timeouts)).await
}

fn text(text: &str) -> Result<Delta, ModelError> {
    let text = text.to_owned();
    Ok(Delta::Text { block: 0, text })
}

fn stop(cost_usd: f64) -> Result<Delta, ModelError> {
    let usage = TokenUsage {
        input_tokens: 100,
        output_tokens: 5,
        total_tokens: 105,
        cost_usd,
        ..TokenUsage::default()
    };
    let reason = StopReason::EndTurn;
    Ok(Delta::Stop { reason, usage })
}

fn transient(class: LlmErrorClass) -> Result<Delta, ModelError> {
    Err(ModelError::transient(class))
}

fn permanent(class: LlmErrorClass) -> Result<Delta, ModelError> {
    Err(class.into())
}
