//! What a model chose to show: items with their ids, taken from the shelf or brought along, all
//! checked before anyone sees one of them.

use std::sync::Arc;

use serde_json::Value;

use crate::connector::{Typed, id_in};
use crate::input::Input;
use crate::scene::Scene;
use crate::shelf::size;
use crate::tool::ToolFailure;

/// Items of one list; nobody looks at more.
pub(super) const IDS_MAX: usize = 500;
/// Of all items together: a quarter of the largest frame that a wire sends.
const BYTES_MAX: usize = 4 * 1_048_576;
/// Ids that a failure names; the rest is counted.
const NAMED_MAX: usize = 20;
/// Of an id that a failure names.
const ID_CHARS_MAX: usize = 64;

/// Items to show, each with its id where it has one.
#[derive(Debug, PartialEq)]
pub(super) struct Choice {
    /// Their ids, in order.
    pub(super) ids: Vec<String>,
    /// The items, in the same order.
    pub(super) items: Vec<Value>,
}

impl Choice {
    /// Reads `{ids: […]}` or `{items: […]}`.
    pub(super) fn list(
        input: &Value,
        data_type: &str,
        typed: &[Arc<Typed>],
        scene: &Scene,
    ) -> Result<Self, ToolFailure> {
        let input = Input::new(input, &["ids", "items"])?;
        match (input.optional_list("ids")?, input.optional_list("items")?) {
            (Some(ids), None) => Self::shelved(&texts(ids)?, data_type, scene),
            (None, Some(items)) => Self::brought(items, typed),
            (Some(_), Some(_)) | (None, None) => Err(ToolFailure::invalid_input(
                "Give either `ids` or `items`: a list.",
            )),
        }
    }

    /// Reads `{id}` or `{component: {…}}`.
    pub(super) fn one(
        input: &Value,
        data_type: &str,
        typed: &[Arc<Typed>],
        scene: &Scene,
    ) -> Result<Self, ToolFailure> {
        let input = Input::new(input, &["id", "component"])?;
        match (
            input.optional_text("id")?,
            input.optional_value("component"),
        ) {
            (Some(id), None) => Self::shelved(&[id], data_type, scene),
            (None, Some(component @ Value::Object(_))) => {
                let items = vec![component.clone()];
                fits(&items, typed)?;
                small(&items)?;
                let ids = id_of(component, typed).into_iter().collect();
                Ok(Self { ids, items })
            }
            (None, Some(_)) => Err(ToolFailure::invalid_input("`component` must be an object.")),
            (Some(_), Some(_)) | (None, None) => Err(ToolFailure::invalid_input(
                "Give either `id`, a string, or `component`, an object.",
            )),
        }
    }

    fn shelved(ids: &[&str], data_type: &str, scene: &Scene) -> Result<Self, ToolFailure> {
        let mut once: Vec<&str> = Vec::with_capacity(ids.len());
        for id in ids {
            if !once.contains(id) {
                once.push(id);
            }
        }
        few(once.len())?;
        let found = scene.shelf.find(data_type, &once);
        let found = found.map_err(|missing| ToolFailure::invalid_input(unknown(&missing)))?;
        let items: Vec<Value> = found.iter().map(|item| Value::clone(item)).collect();
        small(&items)?;
        let ids = once.into_iter().map(str::to_owned).collect();
        Ok(Self { ids, items })
    }

    fn brought(items: &[Value], typed: &[Arc<Typed>]) -> Result<Self, ToolFailure> {
        few(items.len())?;
        let ids: Option<Vec<String>> = items.iter().map(|item| id_of(item, typed)).collect();
        let ids = ids.ok_or_else(|| {
            ToolFailure::invalid_input("Every item must be an object with an `id`.")
        })?;
        fits(items, typed)?;
        small(items)?;
        Ok(Self {
            ids,
            items: items.to_vec(),
        })
    }
}

fn texts(list: &[Value]) -> Result<Vec<&str>, ToolFailure> {
    let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    texts.ok_or_else(|| ToolFailure::invalid_input("`ids` must be a list of strings."))
}

/// The id of an item by the names that its enrichers have for it.
fn id_of(item: &Value, typed: &[Arc<Typed>]) -> Option<String> {
    let named = typed.iter().find_map(|typed| typed.id_of(item));
    named.or_else(|| id_in(item, "id"))
}

fn few(count: usize) -> Result<(), ToolFailure> {
    if count == 0 {
        return Err(ToolFailure::invalid_input("There is nothing to show."));
    }
    if count > IDS_MAX {
        let told = format!("At most {IDS_MAX} items can be shown at once.");
        return Err(ToolFailure::invalid_input(told));
    }
    Ok(())
}

fn small(items: &[Value]) -> Result<(), ToolFailure> {
    if items.iter().map(size).sum::<usize>() > BYTES_MAX {
        return Err(ToolFailure::invalid_input(
            "Together these items are larger than 4 MiB; show fewer of them.",
        ));
    }
    Ok(())
}

fn fits(items: &[Value], typed: &[Arc<Typed>]) -> Result<(), ToolFailure> {
    if typed.is_empty() || typed.iter().any(|typed| typed.fits_items(items)) {
        return Ok(());
    }
    Err(ToolFailure::invalid_input(
        "The items do not have the shape of their type. Name them by id instead.",
    ))
}

fn unknown(missing: &[String]) -> String {
    let named: Vec<String> = missing
        .iter()
        .take(NAMED_MAX)
        .map(|id| id.chars().take(ID_CHARS_MAX).collect())
        .collect();
    let more = match missing.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Nothing was shown: there are no items with these ids: {}{more}. Use ids of what was found.",
        named.join(", ")
    )
}
