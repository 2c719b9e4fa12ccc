//! The cost of a model call: its tokens by the pack's prices. Pure. [`Prices`] looks a model up in
//! the pack's table, and [`TokenPrice`] multiplies.

use turnwire_event::TokenUsage;
use turnwire_pack::{ModelPrice, PriceTable};

use crate::remote::CostCalculator;

/// Number of tokens that a price is for.
const TOKENS_PER_PRICE: f64 = 1e6;

/// Prices of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrice {
    /// USD per million input tokens.
    pub input: f64,
    /// USD per million output tokens, reasoning included.
    pub output: f64,
    /// USD per million input tokens served from the vendor's cache.
    pub cached_input: f64,
    /// USD per million input tokens that the vendor writes to its cache.
    pub cache_write: f64,
}

impl TokenPrice {
    /// The cost of a call in USD. `cache_written` is the part of the input tokens that the vendor
    /// wrote to its cache. Contradicting counts are capped: cached and written tokens never exceed
    /// the input tokens.
    pub fn cost(&self, usage: &TokenUsage, cache_written: u64) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let cache_written = cache_written.min(usage.input_tokens - cached);
        let uncached = usage.input_tokens - cached - cache_written;
        let parts = [
            (uncached, self.input),
            (cached, self.cached_input),
            (cache_written, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        let total: f64 = parts
            .iter()
            .map(|(tokens, price)| *tokens as f64 * price)
            .sum();
        total / TOKENS_PER_PRICE
    }
}

impl From<ModelPrice> for TokenPrice {
    fn from(def: ModelPrice) -> Self {
        Self {
            input: def.input,
            output: def.output,
            cached_input: def.cached_input,
            cache_write: def.cache_write,
        }
    }
}

/// The [`PriceTable`] of a pack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPrices {
    table: PriceTable,
}

impl ModelPrices {
    /// The prices listed in `table`.
    pub fn new(table: &PriceTable) -> Self {
        Self {
            table: table.clone(),
        }
    }

    /// The price of `provider:model`, by the longest matching pattern; `None` if no pattern
    /// matches.
    pub fn price_of(&self, model: &str) -> Option<TokenPrice> {
        self.table.of(model).map(TokenPrice::from)
    }
}

impl CostCalculator for ModelPrices {
    fn cost_usd(&self, model: &str, usage: &TokenUsage, cache_written_tokens: u64) -> f64 {
        self.price_of(model)
            .map_or(0.0, |price| price.cost(usage, cache_written_tokens))
    }
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

    const PRICE: TokenPrice = TokenPrice {
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
        let cost = PRICE.cost(&usage(1_000_000, 400_000, 200_000), 100_000);
        assert!(near(cost, 0.5 * 3.0 + 0.4 * 0.25 + 0.1 * 4.0 + 0.2 * 15.0));
        assert!(near(PRICE.cost(&usage(0, 0, 0), 0), 0.0));
    }

    #[test]
    fn cost_counts_reasoning_tokens_as_output() {
        let mut reasoned = usage(0, 0, 10);
        reasoned.reasoning_tokens = 8;
        assert!(near(
            PRICE.cost(&reasoned, 0),
            PRICE.cost(&usage(0, 0, 10), 0)
        ));
    }

    #[test]
    fn cost_with_contradicting_counts_is_not_negative() {
        for (input, cached, cache_written) in
            [(10, 20, 0), (10, 5, 20), (0, 1, u64::MAX), (3, 3, 3)]
        {
            let cost = PRICE.cost(&usage(input, cached, 0), cache_written);
            assert!(
                (0.0..=4.0 * input as f64).contains(&cost),
                "{input} {cached} {cache_written}: {cost}"
            );
        }
        let largest = usage(u64::MAX, 0, u64::MAX);
        assert!(PRICE.cost(&largest, 0).is_finite());
    }

    #[test]
    fn unlisted_model_has_no_price_and_costs_nothing() {
        let price = ModelPrice {
            input: 3.0,
            output: 15.0,
            cached_input: 0.25,
            cache_write: 4.0,
        };
        let prices = ModelPrices::new(&PriceTable {
            entries: vec![("a:*".into(), price)],
        });
        assert_eq!(prices.price_of("a:big"), Some(PRICE));
        assert_eq!(prices.price_of("b:big"), None);
        let million = usage(1_000_000, 0, 0);
        assert!(near(prices.cost_usd("a:big", &million, 0), 3.0));
        assert!(near(prices.cost_usd("b:big", &million, 0), 0.0));
    }
}
