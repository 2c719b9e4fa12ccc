//! The OpenAPI document of a running server: the committed file with the limits of that server.

use std::sync::LazyLock;

use serde_json::Value;

/// The document with the default limits; `cargo xtask schema` writes it.
const COMMITTED: &str = include_str!("../../../../schema/openapi.json");

/// The limits in the document that depend on the server's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Default and largest page size of a list.
    pub list_page: (usize, usize),
    /// Default and largest page size of messages.
    pub messages_page: (usize, usize),
    /// Default and largest page size of events.
    pub events_page: (usize, usize),
    /// Largest number of blocks in a message.
    pub message_blocks: usize,
}

impl Default for DocumentLimits {
    /// The limits of a server with default settings.
    fn default() -> Self {
        Self {
            list_page: (50, 200),
            messages_page: (50, 200),
            events_page: (200, 1_000),
            message_blocks: 1_000,
        }
    }
}

impl DocumentLimits {
    /// Writes the limits that are in schemas.
    pub(super) fn set_in_schemas(self, document: &mut Value) {
        let blocks = document.pointer_mut("/components/schemas/Input/anyOf/1/maxItems");
        if let Some(blocks_max) = blocks {
            *blocks_max = self.message_blocks.into();
        }
    }

    /// The page sizes of the list at `path`.
    fn page(self, path: &str) -> (usize, usize) {
        match path.rsplit('/').next() {
            Some("messages") => self.messages_page,
            Some("events") => self.events_page,
            Some(_) | None => self.list_page,
        }
    }
}

/// The method and path of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOperation {
    /// The method in upper case.
    pub method: String,
    /// The path with parameter names in braces.
    pub path: String,
}

/// The OpenAPI document of a server with these limits.
pub fn document(limits: DocumentLimits) -> Value {
    let mut document = committed();
    let paths = document["paths"].as_object_mut();
    for (path, operations) in paths.into_iter().flatten() {
        let (default, max) = limits.page(path);
        let operations = operations.as_object_mut().into_iter().flatten();
        let parameters = operations.filter_map(|(_, operation)| operation.get_mut("parameters"));
        let parameters = parameters.filter_map(Value::as_array_mut).flatten();
        for parameter in parameters.filter(|parameter| parameter["name"] == "limit") {
            parameter["schema"]["maximum"] = max.into();
            parameter["schema"]["default"] = default.into();
        }
    }
    limits.set_in_schemas(&mut document);
    document
}

/// `document` as a server that believes every caller serves it: no operation needs a token.
pub fn without_security(mut document: Value) -> Value {
    if let Some(components) = document["components"].as_object_mut() {
        components.remove("securitySchemes");
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.filter_map(|(_, operations)| operations.as_object_mut());
    for (_, operation) in operations.flatten() {
        if let Some(operation) = operation.as_object_mut() {
            operation.remove("security");
        }
    }
    document
}

/// Every operation of the API, in the order of the document.
pub fn operations() -> &'static [ApiOperation] {
    static OPERATIONS: LazyLock<Vec<ApiOperation>> = LazyLock::new(|| {
        let document = committed();
        let mut all = Vec::new();
        for (path, operations) in document["paths"].as_object().into_iter().flatten() {
            let methods = operations.as_object().into_iter().flatten();
            all.extend(methods.map(|(method, _)| ApiOperation {
                method: method.to_ascii_uppercase(),
                path: path.clone(),
            }));
        }
        all
    });
    &OPERATIONS
}

fn committed() -> Value {
    serde_json::from_str(COMMITTED).expect("the committed document is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_has_the_limits_of_the_server() {
        let limits = DocumentLimits {
            list_page: (3, 4),
            messages_page: (5, 6),
            events_page: (7, 8),
            message_blocks: 9,
        };
        let document = document(limits);
        let input = &document["components"]["schemas"]["Input"]["anyOf"][1];
        assert_eq!(input["maxItems"], 9);
        for (path, default, max) in [
            ("/sessions", 3, 4),
            ("/sessions/{id}/turns", 3, 4),
            ("/sessions/{id}/messages", 5, 6),
            ("/sessions/{id}/events", 7, 8),
        ] {
            let parameters = document["paths"][path]["get"]["parameters"].as_array();
            let limit = parameters
                .expect("a list")
                .iter()
                .find(|p| p["name"] == "limit");
            let schema = &limit.expect("a limit")["schema"];
            assert_eq!(
                (&schema["default"], &schema["maximum"]),
                (&default.into(), &max.into())
            );
        }
    }

    #[test]
    fn default_limits_keep_the_committed_document() {
        assert_eq!(document(DocumentLimits::default()), committed());
    }

    #[test]
    fn operations_match_the_document() {
        let has = |method: &str, path: &str| {
            let mut all = operations().iter();
            all.any(|operation| operation.method == method && operation.path == path)
        };
        assert!(has("GET", "/sessions") && has("POST", "/sessions"));
        assert!(has("DELETE", "/sessions/{id}") && !has("DELETE", "/sessions"));
    }
}
