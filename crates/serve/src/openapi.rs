//! `/openapi.json`: the document of the API with the limits of this server, made once, and
//! `/asyncapi.json`, the document of the streams.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use bytes::Bytes;
use turnwire_wire::asyncapi;
use turnwire_wire::openapi::{DocumentLimits, document, without_security};

use crate::config::ServerConfig;
use crate::config::auth::AuthMode;

/// The routes of the documents, for any state.
pub fn router<S: Clone + Send + Sync + 'static>(config: &ServerConfig) -> Router<S> {
    let mut document = document(limits(config));
    if config.auth.mode == AuthMode::None {
        document = without_security(document);
    }
    let text = Bytes::from(document.to_string());
    let streams = Bytes::from_static(asyncapi::DOCUMENT.as_bytes());
    let route = |text: Bytes| {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        get(async move || (kind, text))
    };
    Router::new()
        .route("/openapi.json", route(text))
        .route("/asyncapi.json", route(streams))
}

fn limits(config: &ServerConfig) -> DocumentLimits {
    let pages = &config.session;
    DocumentLimits {
        list_page: (pages.list_page, pages.list_page_max),
        messages_page: (pages.messages_page, pages.messages_page_max),
        events_page: (pages.events_page, pages.events_page_max),
        message_blocks: config.turn.message_blocks_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingSources;

    #[test]
    fn committed_document_has_default_limits() {
        let sources = SettingSources {
            home: Some("/nonexistent/turnwire".into()),
            ..SettingSources::default()
        };
        let config = ServerConfig::load(&sources).expect("defaults");
        assert_eq!(limits(&config), DocumentLimits::default());
    }
}
