//! Digests of tools and tool servers before variables are filled in: the same in every environment,
//! and different after every edit.

use std::collections::BTreeMap;

use crate::pack::tool::SERVER_PREFIX;
use crate::source::form::Pairs;
use crate::source::tool::ToolsSource;
use crate::text::digest::Digest;
use crate::yaml::Located;

type CheckedTexts = Option<Located<Pairs<Located<String>>>>;

/// Tool → digest, and `mcp:<server>` → digest, for those whose values may have variables.
pub(crate) fn digests(source: Option<&ToolsSource>) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    let Some(source) = source else {
        return digests;
    };
    for tool in &source.tools {
        let tool = &tool.value;
        let mut parts = Vec::new();
        one(&mut parts, "url", &tool.url);
        many(&mut parts, "query", &tool.query);
        many(&mut parts, "headers", &tool.headers);
        list(&mut parts, &tool.command);
        many(&mut parts, "env", &tool.env);
        if let Some(name) = tool.name.as_ref().filter(|_| !parts.is_empty()) {
            digests.insert(name.value.clone(), Digest::of(parts).short());
        }
    }
    for (name, server) in &source.mcp_servers.0 {
        let server = &server.value;
        let mut parts = Vec::new();
        one(&mut parts, "url", &server.url);
        many(&mut parts, "headers", &server.headers);
        list(&mut parts, &server.command);
        many(&mut parts, "env", &server.env);
        digests.insert(
            format!("{SERVER_PREFIX}{}", name.value),
            Digest::of(parts).short(),
        );
    }
    digests
}

fn one<'a>(parts: &mut Vec<&'a str>, name: &'a str, field: &'a Option<Located<String>>) {
    parts.extend(field.iter().flat_map(|text| [name, text.value.as_str()]));
}

fn list<'a>(parts: &mut Vec<&'a str>, field: &'a Option<Located<Vec<Located<String>>>>) {
    let words = field.iter().flat_map(|words| &words.value);
    parts.extend(words.flat_map(|word| ["command", word.value.as_str()]));
}

fn many<'a>(parts: &mut Vec<&'a str>, name: &'a str, field: &'a CheckedTexts) {
    let pairs = field.iter().flat_map(|pairs| &pairs.value.0);
    parts.extend(pairs.flat_map(|(key, value)| [name, key.value.as_str(), value.value.as_str()]));
}
