//! The items that a model wants to show: items of the store by id, or items that the model wrote, all
//! checked before one is emitted.

use std::sync::Arc;

use serde_json::Value;

use crate::data_service::{EnricherType, id_in};
use crate::input::InputFields;
use crate::tool::{ToolContext, ToolFailure, json_bytes};

/// Items of one list; more than a person reads.
pub(super) const ITEMS_MAX: usize = 500;
/// The limit of all items together: a quarter of the largest frame of a wire.
const BYTES_MAX: usize = 4 * 1_048_576;
/// Ids that a failure names; further ones are counted.
const NAMED_MAX: usize = 20;
/// The limit of an id in a failure.
const ID_CHARS_MAX: usize = 64;

/// The items to show, with their ids.
#[derive(Debug, PartialEq)]
pub(super) struct ItemSelection {
    pub(super) ids: Vec<String>,
    /// In the order of `ids`.
    pub(super) items: Vec<Value>,
}

impl ItemSelection {
    /// Reads `{ids: […]}`, or `{items: […]}` where there are `enrichers` to check them with.
    pub(super) fn list(
        input: &Value,
        data_type: &str,
        enrichers: Option<&[Arc<EnricherType>]>,
        context: &ToolContext,
    ) -> Result<Self, ToolFailure> {
        let input = InputFields::new(input, &["ids", "items"])?;
        match (input.optional_list("ids")?, input.optional_list("items")?) {
            (Some(ids), None) => Self::from_store(&strings(ids)?, data_type, context),
            (None, Some(items)) => Self::from_model(items, enrichers.ok_or_else(not_written)?),
            (Some(_), Some(_)) | (None, None) => Err(ToolFailure::invalid_input(match enrichers {
                Some(_) => "Give either `ids` or `items`: a list.",
                None => "Give `ids`: a list.",
            })),
        }
    }

    /// Reads `{id}`, or `{component: {…}}` where there are `enrichers` to check it with.
    pub(super) fn one(
        input: &Value,
        data_type: &str,
        enrichers: Option<&[Arc<EnricherType>]>,
        context: &ToolContext,
    ) -> Result<Self, ToolFailure> {
        let input = InputFields::new(input, &["id", "component"])?;
        let component = input.optional_object("component")?;
        match (input.optional_text("id")?, component) {
            (Some(id), None) => Self::from_store(&[id], data_type, context),
            (None, Some(component)) => {
                let enrichers = enrichers.ok_or_else(not_written)?;
                let items = vec![component.clone()];
                check_schema(&items, enrichers)?;
                check_bytes(&items)?;
                let ids = id_of(component, enrichers).into_iter().collect();
                Ok(Self { ids, items })
            }
            (Some(_), Some(_)) | (None, None) => Err(ToolFailure::invalid_input(match enrichers {
                Some(_) => "Give either `id`, a string, or `component`, an object.",
                None => "Give `id`: a string.",
            })),
        }
    }

    fn from_store(
        ids: &[&str],
        data_type: &str,
        context: &ToolContext,
    ) -> Result<Self, ToolFailure> {
        let mut distinct: Vec<&str> = Vec::with_capacity(ids.len());
        for id in ids {
            if !distinct.contains(id) {
                distinct.push(id);
            }
        }
        check_count(distinct.len())?;
        let stored = context.items.get(data_type, &distinct);
        let stored =
            stored.map_err(|missing| ToolFailure::invalid_input(missing_message(&missing)))?;
        let items: Vec<Value> = stored.iter().map(|item| Value::clone(item)).collect();
        check_bytes(&items)?;
        let ids = distinct.into_iter().map(str::to_owned).collect();
        Ok(Self { ids, items })
    }

    fn from_model(items: &[Value], enrichers: &[Arc<EnricherType>]) -> Result<Self, ToolFailure> {
        check_count(items.len())?;
        let ids: Option<Vec<String>> = items.iter().map(|item| id_of(item, enrichers)).collect();
        let ids = ids.ok_or_else(|| {
            ToolFailure::invalid_input("Every item must be an object with an `id`.")
        })?;
        check_schema(items, enrichers)?;
        check_bytes(items)?;
        Ok(Self {
            ids,
            items: items.to_vec(),
        })
    }
}

/// The tool shows what a data service returned, and nothing that a model wrote (FR-10).
fn not_written() -> ToolFailure {
    ToolFailure::invalid_input("Only what was found can be shown: name it by its id.")
}

fn strings(list: &[Value]) -> Result<Vec<&str>, ToolFailure> {
    let strings: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    strings.ok_or_else(|| ToolFailure::invalid_input("`ids` must be a list of strings."))
}

/// The id of an item, in the field that one of its enrichers names.
fn id_of(item: &Value, enrichers: &[Arc<EnricherType>]) -> Option<String> {
    let id = enrichers.iter().find_map(|enricher| enricher.id_of(item));
    id.or_else(|| id_in(item, "id"))
}

fn check_count(count: usize) -> Result<(), ToolFailure> {
    ToolFailure::require(count > 0, || "There is nothing to show.")?;
    ToolFailure::require(count <= ITEMS_MAX, || {
        format!("At most {ITEMS_MAX} items can be shown at once.")
    })
}

fn check_bytes(items: &[Value]) -> Result<(), ToolFailure> {
    let bytes: usize = items.iter().map(json_bytes).sum();
    ToolFailure::require(
        bytes <= BYTES_MAX,
        || "Together these items are larger than 4 MiB; show fewer of them.",
    )
}

fn check_schema(items: &[Value], enrichers: &[Arc<EnricherType>]) -> Result<(), ToolFailure> {
    let is_valid = |enricher: &Arc<EnricherType>| enricher.are_valid_items(items);
    ToolFailure::require(
        enrichers.iter().any(is_valid),
        || "The items do not match the schema of their type. Name them by id instead.",
    )
}

fn missing_message(missing: &[String]) -> String {
    let short = |id: &String| id.chars().take(ID_CHARS_MAX).collect();
    let named: Vec<String> = missing.iter().take(NAMED_MAX).map(short).collect();
    let others = match missing.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!(
        "Nothing was shown: there are no items with these ids: {}{others}. Use ids of what was found.",
        named.join(", ")
    )
}
