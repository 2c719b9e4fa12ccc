//! Checks `prices.yaml`: names that a model can have, and prices that something can cost.

use super::manifest::is_model;
use super::page::Page;
use crate::finding::{Findings, shown};
use crate::place::At;
use crate::price::{PriceDef, PriceTable};
use crate::source::provider::{PriceSource, PricesSource};

const FILE: &str = "prices.yaml";
/// Prices of one pack: more than all vendors have models.
const PRICES_MAX: usize = 1_000;

/// What `prices.yaml` says; none if it is broken.
pub(crate) fn check(source: Option<&PricesSource>, found: &mut Findings) -> Option<PriceTable> {
    let mut page = Page { file: FILE, found };
    let written = &source?.prices.0;
    let mut entries = Vec::new();
    for (name, price) in written {
        name_form(&mut page, name);
        entries.push((name.value.clone(), one(&mut page, price)));
    }
    if let Some((over, _)) = written.get(PRICES_MAX) {
        let what = format!("the file has more than {PRICES_MAX} prices");
        page.error(over.place, what)
            .write("one for many models: `\"provider:*\"`");
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Some(PriceTable { entries })
}

fn name_form(page: &mut Page<'_>, name: &At<String>) {
    let text = &name.value;
    let stem = text.strip_suffix('*');
    let is_name = match stem {
        Some("") => true,
        // `openai*` would be `openai_responses:…` too.
        Some(stem) => is_model(&format!("{stem}x")) && !stem.contains('*'),
        None => is_model(text) && !text.contains('*'),
    };
    if is_name {
        return;
    }
    let what = format!("`{}` is no model and no beginning of one", shown(text));
    let provider = text.split([':', '*']).next().unwrap_or_default();
    let example = match provider {
        "" => "anthropic",
        provider => provider,
    };
    page.error(name.place, what).write(format!(
        "`\"{}:model\"`, or `\"{0}:*\"` for all of them",
        shown(example)
    ));
}

fn one(page: &mut Page<'_>, source: &At<PriceSource>) -> PriceDef {
    let (home, source) = (source.place, &source.value);
    let example = |name: &str| format!("{name}: 3.0");
    let mut needed = |field: &Option<At<f64>>, name: &str| {
        let written = page.needed(field, name, home, &example(name));
        written
            .and_then(|usd| page.usd(usd, name))
            .unwrap_or_default()
    };
    let (input, output) = (
        needed(&source.input, "input"),
        needed(&source.output, "output"),
    );
    let mut or_input = |field: &Option<At<f64>>, name: &str| {
        let usd = field.as_ref().and_then(|usd| page.usd(usd, name));
        usd.unwrap_or(input)
    };
    PriceDef {
        input,
        output,
        cached_input: or_input(&source.cached_input, "cached_input"),
        cache_write: or_input(&source.cache_write, "cache_write"),
    }
}
