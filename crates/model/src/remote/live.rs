//! The network: one provider's address, its key and its headers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use turnwire_dial::{BadHeader, DialError, Dialer, Headers, Incoming, Outgoing, Url};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::port::BoxFuture;
use zeroize::Zeroizing;

use super::Timeouts;
use super::retry_after::retry_after;
use super::transport::{Ask, Reply, Transport};
use crate::delta::ModelError;
use crate::dialect::Dialect;
use crate::secret::Secret;

/// A provider that cannot be asked as it is set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProvider {
    /// The address is none.
    #[error(
        "base_url is no address of a provider: write `http://` or `https://`, a host, and a path if there is one, without user, password, `?` and `#`"
    )]
    Url,
    /// A header cannot be sent.
    #[error(transparent)]
    Header(#[from] BadHeader),
}

/// Asks a provider over HTTP.
pub struct Live {
    dialer: Arc<Dialer>,
    /// Without the `/` at its end.
    base: String,
    /// The dialect's, the key's among them.
    own: Headers,
    /// The operator's.
    theirs: Headers,
    connect: Duration,
    first_byte: Duration,
}

impl Live {
    /// The provider at `base_url`. `headers` are the operator's and stand over the dialect's.
    pub fn new(
        dialer: Arc<Dialer>,
        base_url: &str,
        dialect: &dyn Dialect,
        key: Option<&Secret>,
        headers: &BTreeMap<String, String>,
        timeouts: &Timeouts,
    ) -> Result<Self, BadProvider> {
        let own: Vec<(&'static str, Zeroizing<String>)> = dialect
            .headers(key.map(Secret::expose))
            .into_iter()
            .map(|(name, value)| (name, Zeroizing::new(value)))
            .collect();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let theirs = headers.iter();
        let theirs = theirs.map(|(name, value)| (name.as_str(), value.as_str()));
        let (own, theirs) = (Headers::new(own)?, Headers::new(theirs)?);
        Ok(Self {
            dialer,
            base: base(base_url)?,
            own,
            theirs,
            connect: timeouts.connect,
            first_byte: timeouts.first_byte,
        })
    }

    fn outgoing(&self, ask: Ask) -> Result<Outgoing, ModelError> {
        let url = Url::parse(&format!("{}{}", self.base, ask.path)).ok();
        // Behind a host without a `/` more of the host's name could follow.
        let url = url.filter(|_| ask.path.starts_with('/'));
        let asked = ask.headers.iter();
        let asked = Headers::new(asked.map(|(name, value)| (*name, value.as_str())));
        let unsent = |place| ModelError::from(LlmErrorClass::Internal).at(place);
        let asked = asked.map_err(|_| unsent("header"))?;
        Ok(Outgoing {
            url: url.ok_or(unsent("address"))?,
            headers: self.own.clone().with(asked).with(self.theirs.clone()),
            body: ask.body,
            connect: self.connect,
            first_byte: self.first_byte,
        })
    }
}

impl Transport for Live {
    fn open(&self, ask: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let dialer = Arc::clone(&self.dialer);
        let outgoing = self.outgoing(ask);
        Box::pin(async move {
            let incoming = dialer.stream(outgoing?).await.map_err(judge)?;
            Ok(Reply {
                status: incoming.status(),
                retry_after: retry_after(|name| incoming.header(name)),
                events: events(&incoming),
                chunks: incoming.map(|chunk| chunk.map_err(judge)).boxed(),
            })
        })
    }
}

/// An address that paths can be put behind.
fn base(text: &str) -> Result<String, BadProvider> {
    let url = Url::parse(text).map_err(|_| BadProvider::Url)?;
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let bare = url.username().is_empty() && url.password().is_none();
    if web && bare && url.query().is_none() && url.fragment().is_none() {
        Ok(url.as_str().trim_end_matches('/').to_owned())
    } else {
        Err(BadProvider::Url)
    }
}

/// Whether the body says that it is a stream of events.
fn events(incoming: &Incoming) -> bool {
    let kind = incoming.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("text/event-stream")
}

fn judge(error: DialError) -> ModelError {
    let (internal, wrong) = (LlmErrorClass::Internal, LlmErrorClass::Provider);
    let late = ModelError::passing(LlmErrorClass::Timeout);
    match error {
        DialError::Refused => ModelError::from(internal).at("not_allowed"),
        DialError::Setup => ModelError::from(internal).at("setup"),
        DialError::Unconnected => late.at("connect"),
        DialError::Timeout => late.at("first_byte"),
        DialError::Unreachable => ModelError::passing(LlmErrorClass::Transport).at("connection"),
        DialError::TooLarge { .. } => ModelError::from(wrong).at("call_too_large"),
        DialError::Redirects => ModelError::from(wrong).at("redirects"),
        DialError::Encoded => ModelError::from(wrong).at("encoding"),
    }
}
