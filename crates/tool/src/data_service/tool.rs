//! The tool that asks a data service, made from a definition of the pack. All that it gets from the
//! [`Connector`] is a verdict (S2-053).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::data::{CollectionKey, DataLoading};
use turnwire_event::code::ToolType;
use turnwire_event::port::EmitRefusal;
use turnwire_event::{Actor, Body, IdGenerator};
use turnwire_pack::ToolDef;

use crate::data_service::connector::Connector;
use crate::data_service::registry::EnricherType;
use crate::data_service::request::without_principal;
use crate::data_service::service_span::{ServiceSpan, ServiceTrace};
use crate::data_service::transport::CALL_MAX;
use crate::data_service::verdict::{ServiceData, ServiceFailure};
use crate::input::object;
use crate::pack_tool::PackTool;
use crate::tool::{ServiceFault, ToolContext, ToolFailure, ToolInvocation};

/// The message for the model, whatever the cause (S2-040).
const UNAVAILABLE: &str = "data unavailable";
/// Added to the timeout of a call, so that the call ends first and says why.
const MARGIN: Duration = Duration::from_secs(1);

/// Asks one enricher through the [`Connector`].
pub(crate) struct EnricherTool {
    enricher: Arc<EnricherType>,
    connector: Arc<Connector>,
    timeout: Duration,
    /// The name of the tool, and the generator of placeholder ids if its agent can show the data as
    /// a list.
    placeholder: Option<(String, Arc<dyn IdGenerator>)>,
}

impl EnricherTool {
    /// A tool that asks `enricher`. With `placeholder_ids`, a call begins with `data.loading`, so
    /// that clients show a placeholder while the service works.
    pub(crate) fn build(
        def: &ToolDef,
        enricher: &Arc<EnricherType>,
        connector: &Arc<Connector>,
        placeholder_ids: Option<&Arc<dyn IdGenerator>>,
    ) -> PackTool {
        let timeout = def.timeout_ms.map_or(CALL_MAX, Duration::from_millis);
        let timeout = timeout.min(CALL_MAX);
        let action = Arc::new(Self {
            enricher: Arc::clone(enricher),
            connector: Arc::clone(connector),
            timeout,
            placeholder: placeholder_ids.map(|ids| (def.name.clone(), Arc::clone(ids))),
        });
        let run = move |call| Arc::clone(&action).run(call);
        let mut tool = PackTool::new(def.clone(), ToolType::Ccs, Some(timeout + MARGIN), run);
        tool.clean_input = without_principal;
        tool
    }

    async fn run(self: Arc<Self>, call: ToolInvocation) -> Result<Value, ToolFailure> {
        let (params, context) = (object(&call.input)?, &call.context);
        let enricher = &self.enricher;
        let begun = self.begin_loading(&call).await;
        begun.map_err(|refusal| ToolFailure::refused("asked", refusal))?;
        let span = ServiceSpan::begin(&call, enricher);
        let trace = ServiceTrace::new(context, span.as_ref());
        let data = self
            .connector
            .call(context, enricher, params, self.timeout, trace);
        let data = data.await;
        if let Some(span) = span {
            span.end(&data);
        }
        match data {
            Ok(data) => Ok(result(data, enricher, context)),
            Err(error) => Err(failure(error, enricher)),
        }
    }
}

impl EnricherTool {
    /// Emits `data.loading` for the data that the call will bring, unless a placeholder of its type
    /// is open. Which items there will be is not known yet.
    async fn begin_loading(&self, call: &ToolInvocation) -> Result<(), EmitRefusal> {
        let Some((name, id_generator)) = &self.placeholder else {
            return Ok(());
        };
        let data_type = &self.enricher.def.domain_type;
        let Some(placeholder) = call.context.items.begin_loading(data_type) else {
            return Ok(());
        };
        let id = format!("data_{}", id_generator.ulid());
        let loading = Body::DataLoading(DataLoading {
            id: id.clone(),
            data_type: data_type.clone(),
            key: CollectionKey { ids: Vec::new() },
        });
        call.emit(Actor::tool(name), loading).await?;
        placeholder.announced(id);
        Ok(())
    }
}

/// The result for the model. Its items are stored first, so that they can be shown by id.
fn result(data: ServiceData, enricher: &EnricherType, context: &ToolContext) -> Value {
    let (ServiceData::Complete(payload) | ServiceData::Partial(payload)) = &data;
    for (id, item) in enricher.items_of(payload) {
        context
            .items
            .put(&enricher.def.domain_type, &id, item.clone());
    }
    match data {
        ServiceData::Complete(payload) => payload,
        ServiceData::Partial(payload) => json!({"data": payload, "caveat": true}),
    }
}

fn failure(error: ServiceFailure, enricher: &EnricherType) -> ToolFailure {
    ToolFailure {
        fault: Some(Box::new(ServiceFault {
            enricher_id: enricher.def.enricher_id.clone(),
            reason: error.reason(),
        })),
        ..ToolFailure::new(error.class(), UNAVAILABLE)
    }
}

#[cfg(test)]
mod tests;
