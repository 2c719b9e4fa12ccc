//! Checks the tools that fetch data from services of connectors.yaml, and those that show data.

use super::{RENDER, ToolCheck};
use crate::check::report::{is_id, word};
use crate::pack::tool::{Enricher, RenderShape, ToolKind};
use crate::source::tool::Connector;
use crate::text::wording::{did_you_mean, one_line, quoted_list};
use crate::yaml::{Located, TextPosition};

impl ToolCheck<'_> {
    /// Checks a tool that calls an enricher.
    pub(super) fn ccs(&mut self) -> ToolKind {
        let source = self.source;
        let example = "enricher_id: offer_search";
        let enricher_id = self.require_text(&source.enricher_id, "enricher_id", example);
        let example = "domain_type: offer_list";
        let domain_type = self.require_text(&source.domain_type, "domain_type", example);
        if let (Some(enricher), Some(domain), false) = (
            &source.enricher_id,
            &source.domain_type,
            self.context.connectors.incomplete,
        ) {
            self.check_enricher(enricher, domain);
        }
        ToolKind::Ccs {
            enricher_id,
            domain_type,
        }
    }

    /// Reports a pair of enricher and domain type that connectors.yaml does not have, and a
    /// connector that does not suit the service of the enricher.
    fn check_enricher(&mut self, id: &Located<String>, domain: &Located<String>) {
        let enrichers = &self.context.connectors.enrichers;
        let of_id = |enricher: &&Enricher| enricher.enricher_id == id.value;
        let mut with_id = enrichers.iter().filter(of_id);
        if let Some(enricher) = with_id.find(|enricher| enricher.domain_type == domain.value) {
            return self.check_transport(enricher);
        }
        let mut domains = enrichers
            .iter()
            .filter(of_id)
            .map(|enricher| &*enricher.domain_type);
        let (id_text, domain_text) = (one_line(&id.value), one_line(&domain.value));
        if let Some(first) = domains.next() {
            let message = format!(
                "the enricher `{id_text}` has no domain_type `{domain_text}` in connectors.yaml"
            );
            let instead = quoted_list([first].into_iter().chain(domains));
            return self.report.error(domain.position, message, instead);
        }
        let message = format!("connectors.yaml has no enricher `{id_text}`");
        let instead = format!(
            "an entry in `enrichers` of connectors.yaml with this enricher_id and domain_type `{domain_text}`"
        );
        let ids = enrichers
            .iter()
            .map(|enricher| enricher.enricher_id.as_str());
        let (message, instead) = did_you_mean(message, &id.value, ids, instead);
        self.report.error(id.position, message, instead);
    }

    /// Reports a connector that does not suit the service of `enricher`.
    fn check_transport(&mut self, enricher: &Enricher) {
        let Enricher {
            enricher_id,
            service: name,
            ..
        } = enricher;
        let service = self.context.connectors.services.get(name);
        let (Some(service), Some(word)) = (service, &self.source.connector) else {
            return;
        };
        let (right, name_of_right, field) = match service.mcp {
            Some(_) => (Connector::CcsMcp, "ccs_mcp", "mcp"),
            None => (Connector::CcsRest, "ccs_rest", "url"),
        };
        if self.connector != Some(right) {
            let message = format!(
                "the enricher `{enricher_id}` is asked at the service `{name}`, which has `{field}`"
            );
            let instead = format!("`connector: {name_of_right}`");
            self.report.error(word.position, message, instead);
        }
    }

    /// Checks a tool that shows data.
    pub(super) fn render(&mut self) -> ToolKind {
        let source = self.source;
        let name = source.name.as_ref().map_or("", |name| name.value.as_str());
        let stem_name = name.strip_prefix(RENDER).unwrap_or_default();
        if let Some(written) = &source.name
            && stem_name.is_empty()
        {
            let name = one_line(name);
            let message = format!("the render tool `{name}` does not begin with `{RENDER}`");
            let stem = name.trim_start_matches("show_").trim_start_matches(RENDER);
            let stem = if stem.is_empty() { "offer_list" } else { stem };
            self.report
                .error(written.position, message, format!("`{RENDER}{stem}`"));
        }
        self.report
            .require(&source.shape, "shape", self.position, "shape: list");
        let data_type = source
            .data_type
            .as_ref()
            .map_or(stem_name, |field| &field.value);
        if is_id(data_type) && !self.context.connectors.incomplete {
            let written = source.data_type.as_ref().or(source.name.as_ref());
            let position = written.map_or(self.position, |written| written.position);
            self.check_data_type(position, data_type);
            self.check_model_items(data_type);
        }
        ToolKind::Render {
            data_type: data_type.to_owned(),
            shape: word(&source.shape).unwrap_or(RenderShape::List),
            model_items: source.model_items.as_ref().is_some_and(|field| field.value),
        }
    }

    /// Refuses items of a model where nothing says what an item of the type is (FR-10).
    fn check_model_items(&mut self, data_type: &str) {
        let Some(field) = self.source.model_items.as_ref().filter(|field| field.value) else {
            return;
        };
        let mut enrichers = self.context.connectors.enrichers.iter();
        let has_schema = enrichers
            .any(|enricher| enricher.domain_type == data_type && enricher.payload_schema.is_some());
        if !has_schema {
            let message = format!("no `payload_schema` checks the items of `{data_type}`");
            let instead = "a `payload_schema` for an enricher of the type, or no `model_items`";
            self.report.error(field.position, message, instead);
        }
    }

    /// Warns of a render tool for data that no enricher returns.
    fn check_data_type(&mut self, position: TextPosition, data_type: &str) {
        let enrichers = self.context.connectors.enrichers.iter();
        let domain_types: Vec<&str> = enrichers.map(|enricher| &*enricher.domain_type).collect();
        if domain_types.contains(&data_type) {
            return;
        }
        let message = format!("no enricher has the domain_type `{data_type}`");
        let instead = "`data_type` with a domain_type of connectors.yaml";
        let (mut message, instead) = did_you_mean(message, data_type, domain_types, instead);
        if !instead.is_empty() {
            message.push_str(": there is nothing to show by id");
        }
        self.report.warning(position, message, instead);
    }
}
