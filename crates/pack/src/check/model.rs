//! Checks of models: providers, names, routing rules and prices.

pub(crate) mod params;
pub(crate) mod provider;
pub(crate) mod price;
pub(crate) mod name;
pub(crate) mod routing;
