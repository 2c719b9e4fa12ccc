//! Checks an HTTP tool: address, query and headers.

use super::ToolCheck;
use crate::check::endpoint::expansion;
use crate::check::endpoint::tool_url;
use crate::check::report::{value_or, word};
use crate::pack::tool::{HttpDef, ToolKind, ToolMethod};
use crate::source::form::Pairs;
use crate::yaml::Located;

/// The maximum timeout: a slower service needs a delegate tool.
pub(super) const TIMEOUT_MS_MAX: u64 = 60_000;
/// The default of `timeout_ms`.
pub(super) const TIMEOUT_MS: u64 = 10_000;
/// The default of `max_bytes`: a model reads the whole response.
const MAX_BYTES: u64 = 1 << 18;
/// The default of `redirects_max`.
const REDIRECTS_MAX: u64 = 3;

impl ToolCheck<'_> {
    pub(super) fn http(&mut self) -> ToolKind {
        let (source, vars) = (self.source, self.context.vars);
        let example = "url: https://api.example.com/v1/{field}";
        let url = self
            .report
            .require(&source.url, "url", self.position, example);
        let url = url.map(|url| tool_url::check(&mut self.report, url, Some(&self.fields), vars));
        let query = source.query.as_ref().map(|query| self.query(&query.value));
        let headers = source.headers.as_ref();
        let headers =
            headers.map(|pairs| expansion::headers(&mut self.report, &pairs.value, &[], vars));
        ToolKind::Http(HttpDef {
            method: word(&source.method).unwrap_or(ToolMethod::Get),
            url: url.unwrap_or_default(),
            query: query.unwrap_or_default(),
            headers: headers.unwrap_or_default(),
            max_bytes: value_or(&source.max_bytes, MAX_BYTES),
            redirects_max: value_or(&source.redirects_max, REDIRECTS_MAX) as u32,
        })
    }

    /// The additional query parameters.
    fn query(&mut self, pairs: &Pairs<Located<String>>) -> Vec<(String, String)> {
        let mut query = Vec::new();
        for (name, value) in &pairs.0 {
            let report = &mut self.report;
            let text = expansion::expand(report, value, self.context.vars).unwrap_or_default();
            let before = report.findings.count();
            expansion::check_fields(report, value, &text, &self.fields);
            if report.findings.count() > before {
                // Reported already.
            } else if text.contains(char::is_control) {
                let message = "this cannot be the value of a parameter";
                report.error(value.position, message, "text on one line");
            } else if !tool_url::is_braced(&text) {
                let message = "this has a `{` or `}` that is not around the name of a field";
                report.error(value.position, message, "`{field}`, or no braces");
            }
            query.push((name.value.clone(), text));
        }
        query
    }
}
