//! Tools that show something: a list as `data.loading` and `data.loaded`, one item as
//! `component.rendered` (R-20, S1-085). The model names items of the [`ItemStore`] by id. Only a tool
//! with `model_items` also shows items that the model wrote, and they must match the schema of their
//! type (FR-10). Nothing is emitted before all items are checked. A list whose `data.loading` was
//! emitted when its data was requested continues that one.
//!
//! [`ItemStore`]: crate::tool::ItemStore

mod selection;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::component::{ComponentRendered, RenderingToolCall};
use turnwire_event::body::data::{CollectionKey, DataLoaded, DataLoading, ItemKey};
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, EmitRefusal};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{Actor, Body, ContentBlock, IdGenerator, MessageId, Role};
use turnwire_pack::{RenderShape, ToolDef};

use crate::data_service::EnricherType;
use crate::input::object_schema;
use crate::pack_tool::PackTool;
use crate::tool::{ToolFailure, ToolInvocation, deliver};

use selection::{ITEMS_MAX, ItemSelection};

/// Shows one type of data.
pub(crate) struct RenderTool {
    name: String,
    data_type: String,
    shape: RenderShape,
    /// The enrichers of this type.
    enrichers: Vec<Arc<EnricherType>>,
    /// True if the model may write items of its own.
    model_items: bool,
    id_generator: Arc<dyn IdGenerator>,
}

impl RenderTool {
    pub(crate) fn build(
        def: &ToolDef,
        (data_type, shape, model_items): (&str, RenderShape, bool),
        enrichers: Vec<Arc<EnricherType>>,
        id_generator: &Arc<dyn IdGenerator>,
    ) -> PackTool {
        let mut def = def.clone();
        if def.input_schema.is_null() {
            def.input_schema = schema(shape, model_items);
        }
        // Showing something needs no approval.
        def.approval = false;
        let action = Arc::new(Self {
            name: def.name.clone(),
            data_type: data_type.to_owned(),
            shape,
            enrichers,
            model_items,
            id_generator: Arc::clone(id_generator),
        });
        let timeout = def.timeout_ms.map(Duration::from_millis);
        let run = move |call| Arc::clone(&action).run(call);
        PackTool::new(def, ToolType::Render, timeout, run)
    }

    async fn run(self: Arc<Self>, call: ToolInvocation) -> Result<Value, ToolFailure> {
        let data_type = &self.data_type;
        let read = match self.shape {
            RenderShape::List => ItemSelection::list,
            RenderShape::Single => ItemSelection::one,
        };
        // Without enrichers no item of a model passes.
        let enrichers = self.model_items.then_some(&*self.enrichers);
        let selection = read(&call.input, data_type, enrichers, &call.context)?;
        let result = json!({
            "shown": selection.items.len(),
            "type": data_type,
            "ids": selection.ids,
        });
        let emitted = match self.shape {
            RenderShape::List => self.emit_list(&call, selection).await,
            RenderShape::Single => self.emit_component(&call, selection).await,
        };
        emitted.map_err(|refusal| ToolFailure::refused("shown", refusal))?;
        Ok(result)
    }

    async fn emit_list(
        &self,
        call: &ToolInvocation,
        selection: ItemSelection,
    ) -> Result<(), EmitRefusal> {
        let ids = selection.ids.into_iter().map(|id| ItemKey { id }).collect();
        let key = CollectionKey { ids };
        let placeholder = call.context.items.end_loading(&self.data_type);
        let id = match placeholder {
            Some(id) => id,
            None => {
                let id = format!("data_{}", self.id_generator.ulid());
                let loading = Body::DataLoading(DataLoading {
                    id: id.clone(),
                    data_type: self.data_type.clone(),
                    key: key.clone(),
                });
                self.emit(call, loading, None).await?;
                id
            }
        };
        let block = ContentBlock::Data {
            data_id: id.clone(),
            data_type: self.data_type.clone(),
            key: json!(key),
            items: Value::Array(selection.items.clone()),
        };
        let loaded = Body::DataLoaded(DataLoaded {
            id,
            data_type: self.data_type.clone(),
            key,
            items: selection.items,
        });
        self.emit(call, loaded, Some(block)).await
    }

    async fn emit_component(
        &self,
        call: &ToolInvocation,
        selection: ItemSelection,
    ) -> Result<(), EmitRefusal> {
        for component in selection.items {
            let block = ContentBlock::Component {
                tool_use_id: call.tool_use_id,
                component: component.clone(),
            };
            let rendered = Body::ComponentRendered(ComponentRendered {
                component,
                tool_call: RenderingToolCall {
                    upstream_id: None,
                    id: call.tool_use_id,
                    name: self.name.clone(),
                    tool_type: ToolType::Render,
                },
            });
            self.emit(call, rendered, Some(block)).await?;
        }
        Ok(())
    }

    /// Emits one event; its content is also stored as a message of the turn (S1-088).
    async fn emit(
        &self,
        call: &ToolInvocation,
        body: Body,
        block: Option<ContentBlock>,
    ) -> Result<(), EmitRefusal> {
        let message = block.map(|block| NewMessage {
            provider_state: turnwire_event::ProviderState::default(),
            id: MessageId(self.id_generator.ulid()),
            role: Role::Tool,
            content: vec![block],
            metadata: turnwire_event::JsonObject::default(),
            scope: MessageScope::Shared,
        });
        let emission = Emission {
            message,
            trace: call.context.trace.clone(),
            ..Emission::new(Actor::tool(&self.name), body)
        };
        deliver(&*call.emitter, emission).await?;
        Ok(())
    }
}

pub(super) fn schema(shape: RenderShape, model_items: bool) -> Value {
    let (mut properties, field, written) = match shape {
        RenderShape::List => (
            json!({"ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": ITEMS_MAX,
                "description": "Ids of what was found, in the order to be shown.",
            }}),
            "items",
            json!({
                "type": "array",
                "items": {"type": "object"},
                "maxItems": ITEMS_MAX,
                "description": "Whole items, only where nothing was found to name by id.",
            }),
        ),
        RenderShape::Single => (
            json!({"id": {"type": "string", "description": "The id of what was found."}}),
            "component",
            json!({
                "type": "object",
                "description": "The whole thing, only where nothing was found to name by id.",
            }),
        ),
    };
    if model_items {
        properties[field] = written;
    }
    object_schema(properties, &[])
}

#[cfg(test)]
mod tests;
