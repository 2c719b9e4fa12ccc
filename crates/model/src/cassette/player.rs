//! Cassettes as models: `cassette:<name>` plays the cassette of that name, each call in the dialect
//! it was recorded in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::stream::{BoxStream, StreamExt as _, once};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::sha256_hex;
use turnwire_event::port::BoxFuture;

use super::call::Call;
use super::tape::{self, Tape};
use crate::delta::{Delta, ModelError};
use crate::dialect::{Dialect, Params};
use crate::provider::Provider;
use crate::remote::{Ask, Priced, Remote, Reply, Timeouts, Transport};
use crate::request::Request;

/// What the provider of cassettes is called.
pub const CASSETTE: &str = "cassette";
/// Silence that is waited for after all that a recording had: as long as for a provider.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who knows a dialect by its name.
pub type DialectOf = Arc<dyn Fn(&str) -> Option<Arc<dyn Dialect>> + Send + Sync>;

/// The provider of cassettes.
#[derive(Clone)]
pub struct Player(Arc<Rack>);

struct Rack {
    tapes: BTreeMap<String, Tape>,
    dialects: DialectOf,
    price: Option<Arc<dyn Priced>>,
}

impl Player {
    /// Plays `tapes` by their names.
    pub fn new(
        tapes: BTreeMap<String, Tape>,
        dialects: DialectOf,
        price: Option<Arc<dyn Priced>>,
    ) -> Self {
        Self(Arc::new(Rack {
            tapes,
            dialects,
            price,
        }))
    }
}

impl Provider for Player {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Delta, ModelError>> {
        let rack = Arc::clone(&self.0);
        let start = async move { rack.start(request) };
        once(start).try_flatten().boxed()
    }
}

impl Rack {
    /// Finds what answers, and has it read as any other answer is.
    fn start(
        &self,
        request: Request,
    ) -> Result<BoxStream<'static, Result<Delta, ModelError>>, ModelError> {
        let name = request.model.split_once(':').map_or("", |(_, name)| name);
        let words = sha256_hex(request.user_text().as_bytes());
        let (agent, call) = (&request.agent, request.call);
        let unknown = || tape::unknown(&request.model, agent, call);
        let tape = self.tapes.get(name).ok_or_else(unknown)?;
        let call = tape.pick(agent, call, &words).ok_or_else(unknown)?;
        let Some(dialect) = (self.dialects)(&call.dialect) else {
            tracing::warn!(
                dialect = call.dialect,
                "a cassette speaks an unknown dialect"
            );
            return Err(LlmErrorClass::Internal.into());
        };
        let pace = tape.pace();
        let longest = call.ended_after.mul_f64(pace) + PATIENCE;
        let timeouts = Timeouts {
            connect: longest,
            first_byte: longest,
            idle: longest,
            total: longest,
        };
        let price = self.price.clone();
        let one = Arc::new(One { call, pace });
        let remote = Remote::new(CASSETTE, dialect, one, Params::default(), timeouts, price);
        Ok(remote.stream(request))
    }
}

/// The transport that has one answer.
struct One {
    call: Arc<Call>,
    pace: f64,
}

impl Transport for One {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        Box::pin(tape::play(Arc::clone(&self.call), self.pace))
    }
}
