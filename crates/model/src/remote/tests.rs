//! Calls over real sockets: a provider that does whatever a test wants, byte by byte, and a tiny
//! dialect of the tests' own.

mod call;
mod law;
mod refusal;
mod spent;
mod tiny;
mod upstream;
mod vendors;

use futures_util::StreamExt as _;
use serde_json::json;
use turnwire_dial::{Dialer, Options};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{ContentBlock, Role, StopReason};

use super::*;
use crate::delta::Again;
use crate::request::Said;
use crate::secret::Secret;
use tiny::Tiny;
use upstream::{Part, Upstream};

/// Far longer than anything here takes: a wait that ends with it has failed.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);
/// Longer than any test waits.
const PATIENT: Timeouts = {
    let ever = Duration::from_secs(3_600);
    Timeouts {
        connect: ever,
        first_byte: ever,
        idle: ever,
        total: ever,
    }
};
const KEY: &str = "sk-very-secret";

fn request() -> Request {
    let said = Said::new(Role::User, vec![ContentBlock::text("hello")]);
    Request {
        attempt: 1,
        model: "local:big:8b".into(),
        agent: "shop".into(),
        call: 2,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(said)],
        tools: [].into(),
    }
}

fn live(base: &str, timeouts: &Timeouts) -> Arc<Live> {
    let dialer = Arc::new(Dialer::new(Options::default()).expect("a dialer"));
    let key = Secret::from_variable("KEY", Some(KEY.into())).expect("a key");
    let team = BTreeMap::from([("x-team".to_owned(), "market".to_owned())]);
    let live = Live::new(dialer, base, &Tiny, Some(&key), &team, timeouts);
    Arc::new(live.expect("a provider"))
}

fn remote(base: &str, timeouts: Timeouts) -> Remote {
    let transport = live(base, &timeouts);
    let params = Params::default();
    Remote::new("local", Arc::new(Tiny), transport, params, timeouts, None)
}

type Told = Vec<Result<Delta, ModelError>>;

/// All that a call says; whatever happens, it must end by itself.
async fn told(remote: &Remote) -> Told {
    let all = remote.stream(request()).collect();
    tokio::time::timeout(LONG, all).await.expect("it ends")
}

/// All that a call of an upstream with these parts says.
async fn says(parts: Vec<Part>, timeouts: Timeouts) -> Told {
    let upstream = Upstream::start(parts).await;
    told(&remote(&upstream.base, timeouts)).await
}

fn text(text: &str) -> Result<Delta, ModelError> {
    let text = text.to_owned();
    Ok(Delta::Text { block: 0, text })
}

fn stop(cost_usd: f64) -> Result<Delta, ModelError> {
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 5,
        total_tokens: 105,
        cost_usd,
        ..Usage::default()
    };
    let reason = StopReason::EndTurn;
    Ok(Delta::Stop { reason, usage })
}

fn passing(class: LlmErrorClass) -> Result<Delta, ModelError> {
    Err(ModelError::passing(class))
}

fn never(class: LlmErrorClass) -> Result<Delta, ModelError> {
    Err(class.into())
}
