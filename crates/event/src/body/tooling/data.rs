//! `data.*`: a collection to show to the user. Loading and loaded share their `id`; they carry
//! an enricher's payload and no field of its envelope (S1-082, S1-083).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of one item of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ItemKey {
    /// The id of the item at its data service.
    pub id: String,
}

/// The items of a collection, by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectionKey {
    /// The item keys, in display order.
    pub ids: Vec<ItemKey>,
}

/// A collection is being loaded; the client shows a placeholder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataLoading {
    /// The placeholder that `data.loaded` fills.
    pub id: String,
    /// The kind of the collection.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The items of the collection, as far as they are known; none if the data is only requested.
    pub key: CollectionKey,
}

/// A collection was loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataLoaded {
    /// The placeholder of the preceding `data.loading`.
    pub id: String,
    /// The kind of the collection.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The items of the collection.
    pub key: CollectionKey,
    /// The items, as the enricher returned them.
    pub items: Vec<Value>,
}
