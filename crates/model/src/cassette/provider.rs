//! The provider `cassette`: the model `cassette:<name>` plays the cassette of that name, each call
//! in the dialect of its recording.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::stream::{StreamExt as _, once};
use turnwire_event::TokenUsage;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::sha256_hex;

use super::playback::{self, CassettePlayback};
use super::recorded_call::RecordedCall;
use crate::delta::ModelError;
use crate::dialect::{ModelParams, VendorDialect};
use crate::provider::{DeltaStream, ModelProvider};
use crate::remote::{
    CallTimeouts, CostCalculator, ModelTransport, RemoteProvider, ResponseFuture, TransportRequest,
};
use crate::request::ModelRequest;

/// Name of the provider that plays cassettes.
pub const CASSETTE_PROVIDER: &str = "cassette";
/// Timeout after the end of a recording: as long as for a real provider.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// Looks up a [`VendorDialect`] by name; `None` for an unknown name.
pub type DialectLookup = Arc<dyn Fn(&str) -> Option<Arc<dyn VendorDialect>> + Send + Sync>;

/// A [`ModelProvider`] that plays cassettes.
#[derive(Clone)]
pub struct CassetteProvider(Arc<CassetteSet>);

struct CassetteSet {
    cassettes: BTreeMap<String, CassettePlayback>,
    dialects: DialectLookup,
    price: Option<Arc<dyn CostCalculator>>,
}

impl CassetteProvider {
    /// Plays each [`CassettePlayback`] under its name. Without `price` every call costs 0.
    pub fn new(
        cassettes: BTreeMap<String, CassettePlayback>,
        dialects: DialectLookup,
        price: Option<Arc<dyn CostCalculator>>,
    ) -> Self {
        Self(Arc::new(CassetteSet {
            cassettes,
            dialects,
            price,
        }))
    }
}

impl ModelProvider for CassetteProvider {
    fn stream(&self, request: ModelRequest) -> DeltaStream {
        let set = Arc::clone(&self.0);
        let start = async move { set.start(request) };
        once(start).try_flatten().boxed()
    }

    fn cost_usd(&self, model: &str, usage: &TokenUsage) -> f64 {
        let price = self.0.price.as_ref();
        price.map_or(0.0, |price| price.cost_usd(model, usage, 0))
    }
}

impl CassetteSet {
    /// Picks the recorded call and decodes it like any other response.
    fn start(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let name = request.model.split_once(':').map_or("", |(_, name)| name);
        let user_text_sha256 = sha256_hex(request.user_text().as_bytes());
        let (agent, call) = (&request.agent, request.call);
        let no_match = || playback::no_match_error(&request.model, agent, call);
        let cassette = self.cassettes.get(name).ok_or_else(no_match)?;
        let call = cassette
            .pick(agent, call, &user_text_sha256)
            .ok_or_else(no_match)?;
        let Some(dialect) = (self.dialects)(&call.dialect) else {
            tracing::warn!(
                dialect = call.dialect,
                "the cassette was recorded in an unknown dialect"
            );
            return Err(LlmErrorClass::Internal.into());
        };
        let pace = cassette.pace();
        let timeout = call.ended_after.mul_f64(pace) + SILENCE_TIMEOUT;
        let timeouts = CallTimeouts {
            connect: timeout,
            first_byte: timeout,
            idle: timeout,
            silence: timeout,
            total: timeout,
        };
        let price = self.price.clone();
        let transport = Arc::new(SingleCallTransport { call, pace });
        let params = ModelParams::default();
        let remote = RemoteProvider::new(
            CASSETTE_PROVIDER,
            dialect,
            transport,
            params,
            timeouts,
            price,
        );
        Ok(remote.stream(request))
    }
}

/// A [`ModelTransport`] that plays one recorded call.
struct SingleCallTransport {
    call: Arc<RecordedCall>,
    pace: f64,
}

impl ModelTransport for SingleCallTransport {
    fn open(&self, _: TransportRequest) -> ResponseFuture {
        Box::pin(playback::play(Arc::clone(&self.call), self.pace))
    }
}
