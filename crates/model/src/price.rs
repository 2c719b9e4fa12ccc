//! The cost of a model call: its tokens by the pack's prices. Pure.

use turnwire_event::TokenUsage;
use turnwire_pack::{ModelPrice, PriceTable};

use crate::remote::CostCalculator;

/// Number of tokens that a price is for.
const TOKENS_PER_PRICE: f64 = 1e6;

/// A model that [`PriceTable::of`] does not list costs nothing.
impl CostCalculator for PriceTable {
    fn cost_usd(&self, model: &str, usage: &TokenUsage, cache_written_tokens: u64) -> f64 {
        let price = self.of(model);
        price.map_or(0.0, |price| cost(&price, usage, cache_written_tokens))
    }
}

/// The cost of a call in USD. `cache_written` is the part of the input tokens that the vendor
/// wrote to its cache. Contradicting counts are capped: cached and written tokens never exceed
/// the input tokens.
fn cost(price: &ModelPrice, usage: &TokenUsage, cache_written: u64) -> f64 {
    let cached = usage.cached_tokens.min(usage.input_tokens);
    let cache_written = cache_written.min(usage.input_tokens - cached);
    let uncached = usage.input_tokens - cached - cache_written;
    let parts = [
        (uncached, price.input),
        (cached, price.cached_input),
        (cache_written, price.cache_write),
        (usage.output_tokens, price.output),
    ];
    let costs = parts.iter().map(|(tokens, price)| *tokens as f64 * price);
    costs.sum::<f64>() / TOKENS_PER_PRICE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, output: u64) -> TokenUsage {
        TokenUsage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            cached_tokens: cached,
            ..TokenUsage::default()
        }
    }

    const PRICE: ModelPrice = ModelPrice {
        input: 3.0,
        output: 15.0,
        cached_input: 0.25,
        cache_write: 4.0,
    };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn cost_charges_every_token_once_at_its_own_price() {
        let usd = cost(&PRICE, &usage(1_000_000, 400_000, 200_000), 100_000);
        assert!(near(usd, 0.5 * 3.0 + 0.4 * 0.25 + 0.1 * 4.0 + 0.2 * 15.0));
        assert!(near(cost(&PRICE, &usage(0, 0, 0), 0), 0.0));
    }

    #[test]
    fn cost_counts_reasoning_tokens_as_output() {
        let mut reasoned = usage(0, 0, 10);
        reasoned.reasoning_tokens = 8;
        assert!(near(
            cost(&PRICE, &reasoned, 0),
            cost(&PRICE, &usage(0, 0, 10), 0)
        ));
    }

    #[test]
    fn cost_with_contradicting_counts_is_not_negative() {
        for (input, cached, cache_written) in
            [(10, 20, 0), (10, 5, 20), (0, 1, u64::MAX), (3, 3, 3)]
        {
            let usd = cost(&PRICE, &usage(input, cached, 0), cache_written);
            assert!(
                (0.0..=4.0 * input as f64).contains(&usd),
                "{input} {cached} {cache_written}: {usd}"
            );
        }
        let largest = usage(u64::MAX, 0, u64::MAX);
        assert!(cost(&PRICE, &largest, 0).is_finite());
    }

    #[test]
    fn unlisted_model_has_no_price_and_costs_nothing() {
        let prices = PriceTable {
            entries: vec![("a:*".into(), PRICE)],
        };
        let million = usage(1_000_000, 0, 0);
        assert!(near(prices.cost_usd("a:big", &million, 0), 3.0));
        assert!(near(prices.cost_usd("b:big", &million, 0), 0.0));
    }
}
