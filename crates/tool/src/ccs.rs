//! A tool that asks a data service. There is no other kind of such tool: it is made from a pack's
//! definition and a connector, and all that it can get hold of is a verdict (S2-053).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use turnwire_event::code::ToolType;
use turnwire_event::port::BoxFuture;
use turnwire_pack::ToolDef;

use crate::checked::{BadSchema, InputSchema};
use crate::connector::{CALL_MAX, Connector, Given, Lapse, Typed, params};
use crate::scene::Scene;
use crate::tool::{Call, Fault, Tool, ToolFailure};

/// What the model is told when there is nothing, whatever the cause (S2-040).
const UNAVAILABLE: &str = "data unavailable";
/// What a tool may take beyond its own wait, so that its wait ends first and tells the reason.
const MARGIN: Duration = Duration::from_secs(1);

/// A tool in front of one enricher.
pub(crate) struct Ccs {
    def: ToolDef,
    typed: Arc<Typed>,
    connector: Arc<Connector>,
    wait: Duration,
    /// What the model may ask.
    input: Arc<InputSchema>,
}

impl Ccs {
    pub(crate) fn new(
        def: &ToolDef,
        typed: &Arc<Typed>,
        connector: &Arc<Connector>,
    ) -> Result<Self, BadSchema> {
        let input = InputSchema::new(&def.input_schema)?;
        let own = def.timeout_ms.map_or(CALL_MAX, Duration::from_millis);
        Ok(Self {
            def: def.clone(),
            typed: Arc::clone(typed),
            connector: Arc::clone(connector),
            wait: own.min(CALL_MAX),
            input: Arc::new(input),
        })
    }
}

impl Tool for Ccs {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        self.input.text().clone()
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Ccs
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.wait + MARGIN)
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn approval(&self) -> bool {
        self.def.approval
    }

    fn judge(&self, input: &Value) -> Option<Result<(), ToolFailure>> {
        Some(self.input.check(input))
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let (typed, connector) = (Arc::clone(&self.typed), Arc::clone(&self.connector));
        let (input, wait) = (Arc::clone(&self.input), self.wait);
        Box::pin(async move {
            let Call {
                input: wrote,
                scene,
                ..
            } = call;
            let params = checked(wrote, &input)?;
            match connector.call(&scene, &typed, &params, wait).await {
                Ok(given) => Ok(take(given, &typed, &scene)),
                Err(lapse) => Err(failure(lapse, &typed)),
            }
        })
    }
}

/// What the model wrote, if it fits; never with a principal.
fn checked(wrote: Value, input: &InputSchema) -> Result<Map<String, Value>, ToolFailure> {
    let object = || ToolFailure::invalid_input("The input must be an object.");
    let whole = Value::Object(params(wrote).ok_or_else(object)?);
    input.check(&whole)?;
    params(whole).ok_or_else(object)
}

/// The result; its items go on the shelf first, so that they can be shown by id.
fn take(given: Given, typed: &Typed, scene: &Scene) -> Value {
    let (Given::Whole(payload) | Given::Part(payload)) = &given;
    for (id, item) in typed.items_of(payload) {
        scene.shelf.put(&typed.domain_type, &id, item.clone());
    }
    match given {
        Given::Whole(payload) => payload,
        Given::Part(payload) => json!({"data": payload, "caveat": true}),
    }
}

fn failure(lapse: Lapse, typed: &Typed) -> ToolFailure {
    ToolFailure {
        fault: Some(Fault {
            enricher_id: typed.enricher_id.clone(),
            reason: lapse.reason(),
        }),
        ..ToolFailure::new(lapse.class(), UNAVAILABLE)
    }
}

#[cfg(test)]
mod tests;
