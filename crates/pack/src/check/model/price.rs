//! The prices of `prices.yaml`, with the defaults of what is left out.

use crate::check::report::value_or;
use crate::pack::price::{ModelPrice, PriceTable};
use crate::source::provider::{PriceSource, PricesSource};

/// The content of `prices.yaml`; `None` if it is broken.
pub(crate) fn check(source: Option<&PricesSource>) -> Option<PriceTable> {
    let written = source?.prices.0.iter();
    let mut entries: Vec<(String, ModelPrice)> = written
        .map(|(name, price)| (name.value.clone(), price_of(&price.value)))
        .collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Some(PriceTable { entries })
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
