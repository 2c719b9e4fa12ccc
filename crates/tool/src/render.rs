//! Tools that show something: a list as `data.loading` and `data.loaded`, one thing as
//! `component.rendered` (R-20, S1-085). The model names what is on the shelf by id, or brings
//! items of its own, which must fit the schema of their type. Nothing is emitted before all of it
//! is known to be there and to fit.

mod choice;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use turnwire_event::body::component::{Rendered, ToolCall};
use turnwire_event::body::data::{ItemKey, Key, Loaded, Loading};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Emission, Refusal};
use turnwire_event::row::{NewMessage, Scope};
use turnwire_event::{Actor, Body, ContentBlock, MessageId, Mint, Role};
use turnwire_pack::{RenderShape, ToolDef};

use crate::connector::Typed;
use crate::deliver::deliver;
use crate::tool::{Call, Tool, ToolFailure};

use choice::{Choice, IDS_MAX};

/// A tool that shows one type of data.
pub(crate) struct Render {
    def: ToolDef,
    shape: RenderShape,
    what: Arc<What>,
}

/// What the tool shows and with what it makes ids.
struct What {
    name: String,
    data_type: String,
    /// The enrichers that give this type; none if only models do.
    typed: Vec<Arc<Typed>>,
    mint: Arc<dyn Mint>,
}

impl Render {
    pub(crate) fn new(
        def: &ToolDef,
        (data_type, shape): (&str, RenderShape),
        typed: Vec<Arc<Typed>>,
        mint: &Arc<dyn Mint>,
    ) -> Self {
        let mut def = def.clone();
        if def.input_schema.is_null() {
            def.input_schema = schema(shape);
        }
        let what = What {
            name: def.name.clone(),
            data_type: data_type.to_owned(),
            typed,
            mint: Arc::clone(mint),
        };
        Self {
            def,
            shape,
            what: Arc::new(what),
        }
    }
}

fn schema(shape: RenderShape) -> Value {
    let properties = match shape {
        RenderShape::List => json!({
            "ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": IDS_MAX,
                "description": "Ids of what was found, in the order to be shown.",
            },
            "items": {
                "type": "array",
                "items": {"type": "object"},
                "maxItems": IDS_MAX,
                "description": "Whole items, only where nothing was found to name by id.",
            },
        }),
        RenderShape::Single => json!({
            "id": {"type": "string", "description": "The id of what was found."},
            "component": {
                "type": "object",
                "description": "The whole thing, only where nothing was found to name by id.",
            },
        }),
    };
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

impl Tool for Render {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        self.def.input_schema.clone()
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Render
    }

    fn timeout(&self) -> Option<Duration> {
        self.def.timeout_ms.map(Duration::from_millis)
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let what = Arc::clone(&self.what);
        let shape = self.shape;
        Box::pin(async move {
            let choice = match shape {
                RenderShape::List => {
                    Choice::list(&call.input, &what.data_type, &what.typed, &call.scene)
                }
                RenderShape::Single => {
                    Choice::one(&call.input, &what.data_type, &what.typed, &call.scene)
                }
            }?;
            let shown = json!({
                "shown": choice.items.len(),
                "type": what.data_type,
                "ids": choice.ids,
            });
            let sent = match shape {
                RenderShape::List => what.list(&call, choice).await,
                RenderShape::Single => what.one(&call, choice).await,
            };
            sent.map(|()| shown).map_err(|refusal| {
                ToolFailure::new(ToolErrorClass::Cancelled, format!("Not shown: {refusal}."))
            })
        })
    }
}

impl What {
    async fn list(&self, call: &Call, choice: Choice) -> Result<(), Refusal> {
        let id = format!("data_{}", self.mint.ulid());
        let ids = choice.ids.into_iter().map(|id| ItemKey { id }).collect();
        let key = Key { ids };
        let loading = Body::DataLoading(Loading {
            id: id.clone(),
            data_type: self.data_type.clone(),
            key: key.clone(),
        });
        self.emit(call, loading, None).await?;
        let block = ContentBlock::Data {
            data_id: id.clone(),
            data_type: self.data_type.clone(),
            key: json!(key),
            items: Value::Array(choice.items.clone()),
        };
        let loaded = Body::DataLoaded(Loaded {
            id,
            data_type: self.data_type.clone(),
            key,
            items: choice.items,
        });
        self.emit(call, loaded, Some(block)).await
    }

    async fn one(&self, call: &Call, choice: Choice) -> Result<(), Refusal> {
        for component in choice.items {
            let block = ContentBlock::Component {
                tool_use_id: call.tool_use_id,
                component: component.clone(),
            };
            let rendered = Body::ComponentRendered(Rendered {
                component,
                tool_call: ToolCall {
                    id: call.tool_use_id,
                    name: self.name.clone(),
                    tool_type: ToolType::Render,
                },
            });
            self.emit(call, rendered, Some(block)).await?;
        }
        Ok(())
    }

    /// Emits one event; what it shows is also kept as a message of the turn (S1-088).
    async fn emit(
        &self,
        call: &Call,
        body: Body,
        block: Option<ContentBlock>,
    ) -> Result<(), Refusal> {
        let message = block.map(|block| NewMessage {
            kept: turnwire_event::Kept::default(),
            id: MessageId(self.mint.ulid()),
            role: Role::Tool,
            content: vec![block],
            metadata: Map::new(),
            scope: Scope::Shared,
        });
        let emission = Emission {
            message,
            trace: call.scene.trace.clone(),
            ..Emission::new(Actor::tool(&self.name), body)
        };
        deliver(&*call.emitter, emission).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests;
