//! The typing registry: what an enricher answers, by (domain type, enricher id). Schemas are
//! compiled once, when the pack is bound; nothing is fetched for them.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use turnwire_pack::{Enricher, complexity};

/// A pack's connectors cannot be used as they stand. `check` finds most of this earlier, with
/// its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConnector {
    /// The address is none.
    #[error("service `{0}`: its url is not an http or https address")]
    Url(String),
    /// The tool server it is behind does not enrich.
    #[error("service `{service}`: {why}")]
    Behind {
        /// Which service.
        service: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// There is no such service.
    #[error("enricher `{0}`: there is no such service")]
    Service(String),
    /// Its version has no major number.
    #[error("enricher `{0}`: its version must be like 1.2.0")]
    Version(String),
    /// Two of the same pair.
    #[error("enricher `{0}`: there are two of the same domain type")]
    Twice(String),
    /// Its schema is none.
    #[error("enricher `{enricher_id}`: its payload_schema is not a JSON Schema: {why}")]
    Schema {
        /// Whose.
        enricher_id: String,
        /// What is wrong with it.
        why: String,
    },
}

impl BadConnector {
    /// The service that is wrong, if it is one.
    pub fn service(&self) -> Option<&str> {
        match self {
            Self::Url(service) | Self::Behind { service, .. } => Some(service),
            Self::Service(_) | Self::Version(_) | Self::Twice(_) | Self::Schema { .. } => None,
        }
    }
}

/// What one enricher answers.
pub(crate) struct Typed {
    pub(crate) enricher_id: String,
    pub(crate) domain_type: String,
    /// The service it is asked at.
    pub(crate) service: String,
    /// The version it is asked for.
    pub(crate) version: String,
    major: u64,
    items: String,
    item_id: String,
    payload: Option<Validator>,
    /// The payload's schema, but that only the items are required: for items without the rest.
    items_alone: Option<Validator>,
}

impl Typed {
    fn new(enricher: &Enricher) -> Result<Self, BadConnector> {
        let schema = enricher.payload_schema.as_ref();
        let compile = |schema: &Value| {
            complexity::validator(schema).map_err(|why| BadConnector::Schema {
                enricher_id: enricher.enricher_id.clone(),
                why: why.to_string(),
            })
        };
        Ok(Self {
            enricher_id: enricher.enricher_id.clone(),
            domain_type: enricher.domain_type.clone(),
            service: enricher.service.clone(),
            version: enricher.version.clone(),
            major: major(&enricher.version)
                .ok_or_else(|| BadConnector::Version(enricher.enricher_id.clone()))?,
            items: enricher.items.clone(),
            item_id: enricher.item_id.clone(),
            payload: schema.map(compile).transpose()?,
            items_alone: schema
                .and_then(|schema| relaxed(schema, &enricher.items))
                .map(|schema| compile(&schema))
                .transpose()?,
        })
    }

    /// Whether `version` is of the same major version.
    pub(crate) fn understands(&self, version: &str) -> bool {
        major(version) == Some(self.major)
    }

    /// Whether `payload` is what the enricher promised.
    pub(crate) fn fits(&self, payload: &Value) -> bool {
        self.payload.as_ref().is_none_or(|v| v.is_valid(payload))
    }

    /// Whether `items`, which did not come in a payload, are what the enricher would give.
    pub(crate) fn fits_items(&self, items: &[Value]) -> bool {
        match (&self.items_alone, &self.payload) {
            (Some(alone), _) => alone.is_valid(&json!({ self.items.as_str(): items })),
            (None, Some(payload)) => items.iter().all(|item| payload.is_valid(item)),
            (None, None) => true,
        }
    }

    /// The id of an item, if it has one.
    pub(crate) fn id_of(&self, item: &Value) -> Option<String> {
        id_in(item, &self.item_id)
    }

    /// The items of a payload, each with its id: those of its list, or the payload itself if it
    /// is one thing. What has no id cannot be named and is left out.
    pub(crate) fn items_of<'a>(&self, payload: &'a Value) -> Vec<(String, &'a Value)> {
        let list = payload.get(&self.items).unwrap_or(payload);
        let list = list
            .as_array()
            .map_or_else(|| std::slice::from_ref(payload), Vec::as_slice);
        let with_id = |item: &'a Value| self.id_of(item).map(|id| (id, item));
        list.iter().filter_map(with_id).collect()
    }
}

/// The id that stands in the field `key`: a text, or a number as text.
pub(crate) fn id_in(item: &Value, key: &str) -> Option<String> {
    match item.get(key)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `schema` with nothing required but its items; `None` if it has no such field.
fn relaxed(schema: &Value, items: &str) -> Option<Value> {
    schema.get("properties")?.get(items)?;
    let mut fields: Map<String, Value> = schema.as_object()?.clone();
    fields.insert("required".to_owned(), json!([items]));
    Some(Value::Object(fields))
}

fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

/// All enrichers of a pack.
#[derive(Default)]
pub(crate) struct Typing {
    pairs: HashMap<(String, String), Arc<Typed>>,
}

impl Typing {
    pub(crate) fn new(enrichers: &[Enricher]) -> Result<Self, BadConnector> {
        let mut pairs = HashMap::with_capacity(enrichers.len());
        for enricher in enrichers {
            let pair = (enricher.domain_type.clone(), enricher.enricher_id.clone());
            if pairs
                .insert(pair, Arc::new(Typed::new(enricher)?))
                .is_some()
            {
                return Err(BadConnector::Twice(enricher.enricher_id.clone()));
            }
        }
        Ok(Self { pairs })
    }

    /// What a pair means; `None` if nobody registered it.
    pub(crate) fn get(&self, domain_type: &str, enricher_id: &str) -> Option<&Arc<Typed>> {
        let pair = (domain_type.to_owned(), enricher_id.to_owned());
        self.pairs.get(&pair)
    }

    /// Every enricher of a domain type.
    pub(crate) fn of_domain(&self, domain_type: &str) -> Vec<Arc<Typed>> {
        let of_domain = |typed: &&Arc<Typed>| typed.domain_type == domain_type;
        self.pairs.values().filter(of_domain).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(item_id: &str) -> Typed {
        let enricher = Enricher {
            enricher_id: "offer_search".into(),
            domain_type: "offer_list".into(),
            service: "market".into(),
            version: "1.2.0".into(),
            items: "found".into(),
            item_id: item_id.into(),
            payload_schema: None,
        };
        Typed::new(&enricher).expect("an enricher")
    }

    #[test]
    fn items_are_found_in_their_list_or_are_the_payload_itself() {
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
            let typed = typed("sku");
            let ids: Vec<String> = typed
                .items_of(&payload)
                .into_iter()
                .map(|(id, _)| id)
                .collect();
            assert_eq!(ids, expected, "{payload}");
        }
    }
}
