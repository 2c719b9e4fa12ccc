//! What models cost, as a pack says it.

/// USD for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceDef {
    /// Read.
    pub input: f64,
    /// Written, reasoning among them.
    pub output: f64,
    /// Read from the vendor's cache.
    pub cached_input: f64,
    /// Put into the vendor's cache.
    pub cache_write: f64,
}

/// Prices by model: `provider:model`, or the beginning of it with `*` behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceTable {
    /// Names and prices, sorted by name, each name once.
    pub entries: Vec<(String, PriceDef)>,
}
