//! `data.*`: a collection for the person. Loading and loaded share their `id`; what is carried is
//! an enricher's payload and nothing of its envelope (S1-082, S1-083).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One item that will come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ItemKey {
    /// Its id.
    pub id: String,
}

/// Which items are meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Key {
    /// Their ids, in order.
    pub ids: Vec<ItemKey>,
}

/// A place for a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loading {
    /// The place.
    pub id: String,
    /// What kind of collection.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Which items.
    pub key: Key,
}

/// The collection itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loaded {
    /// The place it goes to.
    pub id: String,
    /// What kind of collection.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Which items.
    pub key: Key,
    /// The items, as the enricher gave them.
    pub items: Vec<Value>,
}
