//! A tool that sends an HTTP request through the guarded [`Dialer`]. The pack defines the address and
//! the headers; the model fills the fields of a [`UrlTemplate`], a query or a body.

mod url_template;
mod response;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_dial::{Dialer, HttpMethod, HttpRequest, RequestHeaders};
use turnwire_event::code::ToolType;
use turnwire_pack::{HttpDef, ToolDef, ToolMethod};

use crate::input::object;
use crate::pack_tool::PackTool;
use crate::secrets::Secrets;
use crate::tool::{ToolFailure, ToolInvocation};

use response::{failure, result};
use url_template::UrlTemplate;

/// The default of `timeout_ms`, as the pack has it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The upper bound of `timeout_ms`.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// For the connection, as a part of the timeout.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(5);
/// Added to the timeout of the request, so that the request ends first and says why.
const MARGIN: Duration = Duration::from_secs(1);
/// The upper bound of `max_bytes`: the whole response goes to a model.
const BYTES_MAX: u64 = 8 * 1_048_576;
/// The upper bound of `redirects_max`.
const REDIRECTS_MAX: u32 = 10;

/// Sends requests to one service.
pub(crate) struct HttpTool {
    dialer: Arc<Dialer>,
    method: ToolMethod,
    url: UrlTemplate,
    headers: RequestHeaders,
    accept: String,
    content_type: String,
    secrets: Secrets,
    timeout: Duration,
    max_bytes: usize,
    redirects_max: u8,
}

impl HttpTool {
    /// The tool of `def` and `http`, whose results have none of its own and the server's `keys`. The error says what is wrong and what to do.
    pub(crate) fn build(
        def: &ToolDef,
        http: &HttpDef,
        dialer: &Arc<Dialer>,
        keys: &Secrets,
    ) -> Result<PackTool, String> {
        let timeout = def.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
        let timeout = timeout.min(TIMEOUT_MAX);
        let lower = |name: &str| name.to_ascii_lowercase();
        let headers = http.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
        let is_other = |name: &str| !["accept", "content-type"].contains(&name);
        let others = headers.clone().filter(|(name, _)| is_other(&lower(name)));
        let media_type = |header: &str, default: &str| {
            let mut latest_first = headers.clone().rev();
            let own = latest_first.find(|(name, _)| lower(name) == header);
            let (_, value) = own.unwrap_or((header, default));
            let is_valid = value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            let error = || format!("the value of the header `{header}` cannot be sent");
            is_valid.then(|| value.to_owned()).ok_or_else(error)
        };
        let action = Arc::new(Self {
            dialer: Arc::clone(dialer),
            method: http.method,
            url: UrlTemplate::new(&http.url, &http.query)?,
            headers: RequestHeaders::new(others).map_err(|error| error.to_string())?,
            accept: media_type("accept", "application/json, text/*;q=0.9, */*;q=0.1")?,
            content_type: media_type("content-type", "application/json")?,
            secrets: Secrets::of_http(http).and(keys),
            timeout,
            max_bytes: usize::try_from(http.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
            redirects_max: u8::try_from(http.redirects_max.min(REDIRECTS_MAX)).unwrap_or(0),
        });
        let timeout = Some(timeout + MARGIN);
        let run = move |call| Arc::clone(&action).run(call);
        Ok(PackTool::new(def.clone(), ToolType::Http, timeout, run))
    }

    /// The request for an input.
    fn request(&self, input: &Value) -> Result<HttpRequest, ToolFailure> {
        let input = object(input)?;
        let unused = input.iter().filter(|(name, _)| !self.url.uses(name));
        let unused: Map<String, Value> = unused.map(|(k, v)| (k.clone(), v.clone())).collect();
        let (method, has_body) = match self.method {
            ToolMethod::Get => (HttpMethod::Get, false),
            ToolMethod::Delete => (HttpMethod::Delete, false),
            ToolMethod::Post => (HttpMethod::Post, true),
            ToolMethod::Put => (HttpMethod::Put, true),
            ToolMethod::Patch => (HttpMethod::Patch, true),
        };
        let (query, body) = if has_body {
            (Map::new(), Some(Value::Object(unused).to_string().into()))
        } else {
            (unused, None)
        };
        Ok(HttpRequest {
            headers: self.headers.clone(),
            accept: self.accept.clone().into(),
            content_type: self.content_type.clone().into(),
            body,
            connect: self.timeout.min(CONNECT_TIMEOUT_MAX),
            timeout: self.timeout,
            max_bytes: self.max_bytes,
            redirects_max: Some(self.redirects_max),
            ..HttpRequest::new(method, self.url.fill_with_query(input, &query)?)
        })
    }

    async fn run(self: Arc<Self>, call: ToolInvocation) -> Result<Value, ToolFailure> {
        let mut request = self.request(&call.input)?;
        let trace = call.trace_headers();
        let trace = trace.iter().map(|(name, value)| (*name, value.as_str()));
        // A header of the pack wins.
        let trace = RequestHeaders::new(trace).unwrap_or_default();
        request.headers = trace.with(request.headers);
        let response = self.dialer.send(request).await.map_err(failure)?;
        result(&response, &self.secrets)
    }
}

#[cfg(test)]
mod tests;
