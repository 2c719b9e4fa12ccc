//! What a call costs: its tokens by the pack's prices. Pure.

use turnwire_event::Usage;
use turnwire_pack::{ModelPrice, PriceTable};

use crate::remote::Priced;

/// Prices are for a million tokens.
const TOKENS: f64 = 1e6;

/// What one model costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// USD for a million tokens that are read.
    pub input: f64,
    /// USD for a million tokens that are written, reasoning among them.
    pub output: f64,
    /// USD for a million tokens that are read from the vendor's cache.
    pub cached_input: f64,
    /// USD for a million tokens that are put into it.
    pub cache_write: f64,
}

impl Price {
    /// What a call costs, in USD. `written` are those of the tokens read that the vendor put into
    /// its cache. A vendor that counts more cached tokens than it read is charged for what it read.
    pub fn cost(&self, usage: &Usage, written: u64) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = written.min(usage.input_tokens - cached);
        let fresh = usage.input_tokens - cached - written;
        let parts = [
            (fresh, self.input),
            (cached, self.cached_input),
            (written, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        let sum: f64 = parts
            .iter()
            .map(|(tokens, price)| *tokens as f64 * price)
            .sum();
        sum / TOKENS
    }
}

impl From<ModelPrice> for Price {
    fn from(def: ModelPrice) -> Self {
        Self {
            input: def.input,
            output: def.output,
            cached_input: def.cached_input,
            cache_write: def.cache_write,
        }
    }
}

/// What models cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    table: PriceTable,
}

impl Prices {
    /// Those of a pack.
    pub fn new(table: &PriceTable) -> Self {
        Self {
            table: table.clone(),
        }
    }

    /// The price of `provider:model`, by the longest name that fits; none if nobody said one.
    pub fn of(&self, model: &str) -> Option<Price> {
        self.table.of(model).map(Price::from)
    }
}

impl Priced for Prices {
    fn cost_usd(&self, model: &str, usage: &Usage, cache_written_tokens: u64) -> f64 {
        self.of(model)
            .map_or(0.0, |price| price.cost(usage, cache_written_tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, output: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            cached_tokens: cached,
            ..Usage::default()
        }
    }

    const PRICE: Price = Price {
        input: 3.0,
        output: 15.0,
        cached_input: 0.25,
        cache_write: 4.0,
    };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn every_token_is_charged_once_by_what_became_of_it() {
        let cost = PRICE.cost(&usage(1_000_000, 400_000, 200_000), 100_000);
        assert!(near(cost, 0.5 * 3.0 + 0.4 * 0.25 + 0.1 * 4.0 + 0.2 * 15.0));
        assert!(near(PRICE.cost(&usage(0, 0, 0), 0), 0.0));
    }

    #[test]
    fn reasoning_is_part_of_what_is_written() {
        let mut thought = usage(0, 0, 10);
        thought.reasoning_tokens = 8;
        assert!(near(
            PRICE.cost(&thought, 0),
            PRICE.cost(&usage(0, 0, 10), 0)
        ));
    }

    #[test]
    fn counts_that_contradict_each_other_never_cost_less_than_nothing() {
        for (input, cached, written) in [(10, 20, 0), (10, 5, 20), (0, 1, u64::MAX), (3, 3, 3)] {
            let cost = PRICE.cost(&usage(input, cached, 0), written);
            assert!(
                (0.0..=4.0 * input as f64).contains(&cost),
                "{input} {cached} {written}: {cost}"
            );
        }
        let most = usage(u64::MAX, 0, u64::MAX);
        assert!(PRICE.cost(&most, 0).is_finite());
    }

    #[test]
    fn a_model_without_a_price_has_none() {
        let price = ModelPrice {
            input: 3.0,
            output: 15.0,
            cached_input: 0.25,
            cache_write: 4.0,
        };
        let prices = Prices::new(&PriceTable {
            entries: vec![("a:*".into(), price)],
        });
        assert_eq!(prices.of("a:big"), Some(PRICE));
        assert_eq!(prices.of("b:big"), None);
        let read = usage(1_000_000, 0, 0);
        assert!(near(prices.cost_usd("a:big", &read, 0), 3.0));
        assert!(near(prices.cost_usd("b:big", &read, 0), 0.0));
    }
}
