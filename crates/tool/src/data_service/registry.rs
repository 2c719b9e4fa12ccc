//! The typing registry: the enrichers of a pack by domain type and enricher id. Their schemas are
//! compiled when the pack is loaded; references are not fetched.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use turnwire_pack::{Enricher, complexity};

/// Why there is no [`Connector`](super::Connector) for a pack. The check of a pack finds most of these
/// errors earlier, with their position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorError {
    /// A service cannot be reached as it is defined.
    #[error("service `{service}`: {reason}")]
    Service {
        /// The name of the service.
        service: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The definition of an enricher is not valid.
    #[error("enricher `{enricher_id}`: {reason}")]
    Enricher {
        enricher_id: String,
        /// The mistake in its definition, for the author of the pack.
        reason: String,
    },
}

impl ConnectorError {
    pub(crate) fn enricher(def: &Enricher, reason: impl Into<String>) -> Self {
        Self::Enricher {
            enricher_id: def.enricher_id.clone(),
            reason: reason.into(),
        }
    }

    /// The name of the service, if the error is about one.
    pub fn service(&self) -> Option<&str> {
        match self {
            Self::Service { service, .. } => Some(service),
            Self::Enricher { .. } => None,
        }
    }
}

/// What one [`Enricher`] returns, with its compiled schemas.
pub(crate) struct EnricherType {
    pub(crate) def: Enricher,
    major: u64,
    payload: Option<Validator>,
    /// The payload schema with only the items required, for items without a payload.
    items_alone: Option<Validator>,
}

impl EnricherType {
    fn new(def: &Enricher) -> Result<Self, ConnectorError> {
        let error = |reason: String| ConnectorError::enricher(def, reason);
        let compile = |schema: Value| {
            let compiled = complexity::validator(&schema);
            compiled.map_err(|reason| {
                error(format!("its payload_schema is not a JSON Schema: {reason}"))
            })
        };
        let schema = &def.payload_schema;
        let items_alone = schema.as_ref();
        let items_alone = items_alone.and_then(|schema| items_schema(schema, &def.items));
        Ok(Self {
            major: major(&def.version)
                .ok_or_else(|| error("its version must be like 1.2.0".into()))?,
            payload: schema.clone().map(compile).transpose()?,
            items_alone: items_alone.map(compile).transpose()?,
            def: def.clone(),
        })
    }

    /// Whether `version` has the same major number.
    pub(crate) fn supports(&self, version: &str) -> bool {
        major(version) == Some(self.major)
    }

    /// Whether `payload` matches its schema.
    pub(crate) fn is_valid(&self, payload: &Value) -> bool {
        self.payload.as_ref().is_none_or(|v| v.is_valid(payload))
    }

    /// Whether `items` without a payload match the schema; false without a schema.
    pub(crate) fn are_valid_items(&self, items: &[Value]) -> bool {
        match (&self.items_alone, &self.payload) {
            (Some(items_alone), _) => {
                items_alone.is_valid(&json!({ self.def.items.as_str(): items }))
            }
            (None, Some(payload)) => items.iter().all(|item| payload.is_valid(item)),
            (None, None) => false,
        }
    }

    /// The id of an item, if it has one.
    pub(crate) fn id_of(&self, item: &Value) -> Option<String> {
        id_in(item, &self.def.item_id)
    }

    /// The items of a payload with their ids: those of its list, or the payload itself. Items without
    /// an id are left out.
    pub(crate) fn items_of<'a>(&self, payload: &'a Value) -> Vec<(String, &'a Value)> {
        let list = payload.get(&self.def.items).unwrap_or(payload);
        let list = list
            .as_array()
            .map_or_else(|| std::slice::from_ref(payload), Vec::as_slice);
        let with_id = |item: &'a Value| self.id_of(item).map(|id| (id, item));
        list.iter().filter_map(with_id).collect()
    }
}

/// The id in the field `key`: a string, or a number as a string.
pub(crate) fn id_in(item: &Value, key: &str) -> Option<String> {
    match item.get(key)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `schema` with only its items required; `None` if it has no such field.
fn items_schema(schema: &Value, items: &str) -> Option<Value> {
    schema.get("properties")?.get(items)?;
    let mut fields: Map<String, Value> = schema.as_object()?.clone();
    fields.insert("required".to_owned(), json!([items]));
    Some(Value::Object(fields))
}

fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

/// The [`EnricherType`]s of a pack.
pub(crate) struct EnricherRegistry {
    pairs: HashMap<(String, String), Arc<EnricherType>>,
}

impl EnricherRegistry {
    pub(crate) fn new(enrichers: &[Enricher]) -> Result<Self, ConnectorError> {
        let mut pairs = HashMap::with_capacity(enrichers.len());
        for enricher in enrichers {
            let pair = (enricher.domain_type.clone(), enricher.enricher_id.clone());
            let replaced = pairs.insert(pair, Arc::new(EnricherType::new(enricher)?));
            if replaced.is_some() {
                let reason = "there are two of the same domain type";
                return Err(ConnectorError::enricher(enricher, reason));
            }
        }
        Ok(Self { pairs })
    }

    /// The enricher of a pair, if it is registered.
    pub(crate) fn get(&self, domain_type: &str, enricher_id: &str) -> Option<&Arc<EnricherType>> {
        let pair = (domain_type.to_owned(), enricher_id.to_owned());
        self.pairs.get(&pair)
    }

    /// Every enricher of a domain type.
    pub(crate) fn of_domain(&self, domain_type: &str) -> Vec<Arc<EnricherType>> {
        let of_domain = |enricher: &&Arc<EnricherType>| enricher.def.domain_type == domain_type;
        self.pairs.values().filter(of_domain).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enricher(item_id: &str) -> EnricherType {
        let enricher = Enricher {
            enricher_id: "offer_search".into(),
            domain_type: "offer_list".into(),
            service: "market".into(),
            version: "1.2.0".into(),
            items: "found".into(),
            item_id: item_id.into(),
            payload_schema: None,
        };
        EnricherType::new(&enricher).expect("an enricher")
    }

    #[test]
    fn items_are_those_of_the_list_or_the_payload_itself() {
        let cases = [
            (
                json!({"found": [{"sku": "a"}, {"sku": 7}, {"id": "x"}, {"sku": null}, 5]}),
                vec!["a", "7"],
            ),
            (json!([{"sku": "a"}]), vec!["a"]),
            (json!({"sku": "alone", "points": 5}), vec!["alone"]),
            (json!({"sku": "alone", "found": "none"}), vec!["alone"]),
            (json!({"found": []}), vec![]),
            (json!({"points": 5}), vec![]),
            (json!("text"), vec![]),
        ];
        for (payload, expected) in cases {
            let enricher = enricher("sku");
            let ids: Vec<String> = enricher
                .items_of(&payload)
                .into_iter()
                .map(|(id, _)| id)
                .collect();
            assert_eq!(ids, expected, "{payload}");
        }
    }
}
