//! A tool that asks a service over HTTP, through the guarded dialer and within its bounds. Where
//! it asks and what it sends along is the pack's; the model fills holes, a query or a body.

mod address;
mod answer;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_dial::{Dialer, Headers, Request};
use turnwire_event::code::ToolType;
use turnwire_event::port::BoxFuture;
use turnwire_pack::{HttpDef, ToolDef, ToolMethod};

use crate::secrets::Secrets;
use crate::tool::{Call, Tool, ToolFailure};

use address::Address;
use answer::{failure, judge};

/// How long a request may take where the pack does not say; the same as a pack that is read has.
const WAIT: Duration = Duration::from_secs(10);
/// The longest, whatever the pack says.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Of the wait, what may go into a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// What the tool may take beyond its own wait, so that its wait ends first and tells the reason.
const MARGIN: Duration = Duration::from_secs(1);
/// The largest answer, whatever the pack says: all of it goes to a model.
const BYTES_MAX: u64 = 8 * 1_048_576;
/// Redirects at most, whatever the pack says.
const REDIRECTS_MAX: u32 = 10;

/// Asks one service.
pub(crate) struct Http {
    def: ToolDef,
    ask: Arc<Ask>,
}

/// All that it takes to ask.
struct Ask {
    dialer: Arc<Dialer>,
    method: ToolMethod,
    address: Address,
    headers: Headers,
    accept: String,
    content_type: String,
    secrets: Secrets,
    wait: Duration,
    max_bytes: usize,
    redirects_max: u8,
}

impl Http {
    /// The tool that `def` and `http` say; otherwise what is wrong and what to do.
    pub(crate) fn new(def: &ToolDef, http: &HttpDef, dialer: &Arc<Dialer>) -> Result<Self, String> {
        let address = Address::new(&http.url, &http.query).map_err(|why| why.0)?;
        let own = def.timeout_ms.map_or(WAIT, Duration::from_millis);
        let ours = |name: &str| ["accept", "content-type"].contains(&name);
        let low = |name: &str| name.to_ascii_lowercase();
        let pairs = http.headers.iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_str()));
        let others = pairs.clone().filter(|(name, _)| !ours(&low(name)));
        let headers = Headers::new(others).map_err(|why| why.to_string())?;
        let media = |wanted: &str, otherwise: &str| {
            let given = pairs.clone().rev().find(|(name, _)| low(name) == wanted);
            let (_, value) = given.unwrap_or((wanted, otherwise));
            let fits = value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            let bad = || format!("the value of the header `{wanted}` cannot be sent");
            fits.then(|| value.to_owned()).ok_or_else(bad)
        };
        let ask = Ask {
            dialer: Arc::clone(dialer),
            method: http.method,
            address,
            accept: media("accept", "application/json, text/*;q=0.9, */*;q=0.1")?,
            content_type: media("content-type", "application/json")?,
            secrets: Secrets::of_http(http),
            headers,
            wait: own.min(WAIT_MAX),
            max_bytes: usize::try_from(http.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
            redirects_max: u8::try_from(http.redirects_max.min(REDIRECTS_MAX)).unwrap_or(0),
        };
        Ok(Self {
            def: def.clone(),
            ask: Arc::new(ask),
        })
    }
}

impl Ask {
    /// The request for what the model wrote.
    fn request(&self, input: Value) -> Result<Request, ToolFailure> {
        let Value::Object(input) = input else {
            return Err(ToolFailure::invalid_input("The input must be an object."));
        };
        let loose = input.iter().filter(|(name, _)| !self.address.uses(name));
        let loose: Map<String, Value> = loose.map(|(k, v)| (k.clone(), v.clone())).collect();
        let (method, sends) = match self.method {
            ToolMethod::Get => (turnwire_dial::Method::Get, false),
            ToolMethod::Delete => (turnwire_dial::Method::Delete, false),
            ToolMethod::Post => (turnwire_dial::Method::Post, true),
            ToolMethod::Put => (turnwire_dial::Method::Put, true),
            ToolMethod::Patch => (turnwire_dial::Method::Patch, true),
        };
        let (asked, body) = if sends {
            (Map::new(), Some(Value::Object(loose).to_string().into()))
        } else {
            (loose, None)
        };
        Ok(Request {
            headers: self.headers.clone(),
            accept: self.accept.clone().into(),
            content_type: self.content_type.clone().into(),
            body,
            connect: self.wait.min(CONNECT_MAX),
            timeout: self.wait,
            max_bytes: self.max_bytes,
            redirects_max: self.redirects_max,
            ..Request::new(method, self.address.with(&input, &asked)?)
        })
    }
}

impl Tool for Http {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        self.def.input_schema.clone()
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Http
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.ask.wait + MARGIN)
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn approval(&self) -> bool {
        self.def.approval
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let ask = Arc::clone(&self.ask);
        Box::pin(async move {
            let request = ask.request(call.input)?;
            let reply = ask.dialer.request(request).await.map_err(failure)?;
            judge(&reply, &ask.secrets)
        })
    }
}

#[cfg(test)]
mod tests;
