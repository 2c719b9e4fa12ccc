//! Prices of models.

/// The price of a model, in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    /// The price of input tokens.
    pub input: f64,
    /// The price of output tokens, including reasoning.
    pub output: f64,
    /// The price of input tokens that are read from the vendor's cache.
    pub cached_input: f64,
    /// The price of input tokens that are written to the vendor's cache.
    pub cache_write: f64,
}

/// Each [`ModelPrice`] by model: `provider:model`, or a prefix that ends with `*`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceTable {
    /// Names and prices, sorted by name; names are unique.
    pub entries: Vec<(String, ModelPrice)>,
}

impl PriceTable {
    /// The price of a model: that of its exact name, else of its longest prefix.
    pub fn of(&self, model: &str) -> Option<ModelPrice> {
        let matches = |(name, _): &&(String, ModelPrice)| match name.strip_suffix('*') {
            Some(prefix) => model.starts_with(prefix),
            None => model == name,
        };
        // An exact name ranks above every prefix, even above a prefix of the same length.
        let rank = |(name, _): &&(String, ModelPrice)| match name.strip_suffix('*') {
            Some(prefix) => (0, prefix.len()),
            None => (1, name.len()),
        };
        let best = self.entries.iter().filter(matches).max_by_key(rank);
        best.map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_matching_price_wins() {
        let names = ["*", "a:*", "a:big*", "a:big", "a:big-1", "b:x"];
        let entries = names.iter().zip(1..).map(|(name, n)| {
            let usd = f64::from(n);
            let price = ModelPrice {
                input: usd,
                output: usd,
                cached_input: usd,
                cache_write: usd,
            };
            ((*name).to_owned(), price)
        });
        let table = PriceTable {
            entries: entries.collect(),
        };
        let cases = [
            ("a:big", 4),
            ("a:big-1", 5),
            ("a:big-2", 3),
            ("a:small", 2),
            ("b:x", 6),
            ("b:xy", 1),
            ("a", 1),
        ];
        for (model, n) in cases {
            let price = table.of(model).map(|price| price.input);
            assert_eq!(price, Some(f64::from(n)), "{model}");
        }
        assert_eq!(PriceTable::default().of("a:big"), None);
    }
}
