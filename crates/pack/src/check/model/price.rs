//! Checks `prices.yaml`: names of models, or prefixes of names.

use crate::check::manifest::is_model;
use crate::check::report::{FileReport, value_or};
use crate::finding::Findings;
use crate::pack::price::{ModelPrice, PriceTable};
use crate::source::provider::{PriceSource, PricesSource};
use crate::text::wording::one_line;
use crate::yaml::Located;

const FILE: &str = "prices.yaml";
/// The maximum number of prices: more than all vendors have models.
const PRICES_MAX: usize = 1_000;

/// The content of `prices.yaml`; `None` if it is broken.
pub(crate) fn check(source: Option<&PricesSource>, findings: &mut Findings) -> Option<PriceTable> {
    let mut report = FileReport {
        file: FILE,
        findings,
    };
    let written = &source?.prices.0;
    let mut entries = Vec::new();
    for (name, price) in written {
        check_name(&mut report, name);
        entries.push((name.value.clone(), price_of(&price.value)));
    }
    if let Some((first_extra, _)) = written.get(PRICES_MAX) {
        let message = format!("the file has more than {PRICES_MAX} prices");
        report
            .error(first_extra.position, message)
            .suggest("one for many models: `\"provider:*\"`");
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Some(PriceTable { entries })
}

fn check_name(report: &mut FileReport<'_>, name: &Located<String>) {
    let text = &name.value;
    let stem = text.strip_suffix('*');
    let is_name = match stem {
        Some("") => true,
        // `openai*` would match `openai_responses:…` too.
        Some(stem) => is_model(&format!("{stem}x")) && !stem.contains('*'),
        None => is_model(text) && !text.contains('*'),
    };
    if is_name {
        return;
    }
    let message = format!("`{}` is no model and no beginning of one", one_line(text));
    let provider = text.split([':', '*']).next().unwrap_or_default();
    let example = match provider {
        "" => "anthropic",
        provider => provider,
    };
    report.error(name.position, message).suggest(format!(
        "`\"{}:model\"`, or `\"{0}:*\"` for all of them",
        one_line(example)
    ));
}

fn price_of(source: &PriceSource) -> ModelPrice {
    let input = value_or(&source.input, 0.0);
    ModelPrice {
        input,
        output: value_or(&source.output, 0.0),
        cached_input: value_or(&source.cached_input, input),
        cache_write: value_or(&source.cache_write, input),
    }
}
