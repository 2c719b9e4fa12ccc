//! What tools get from outside: messages of MCP servers and responses of data services.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::Principal;
use turnwire_tool::fuzzing;

/// A key that a server may send back; the output never has it.
const KEY: &str = "sk-fuzz-0123456789";
/// For whom the data is.
const PRINCIPAL: &str = "user-42";

/// A message of an MCP server that answers request 1.
pub(crate) fn run_mcp(input: &[u8]) {
    let reading = fuzzing::read_answer(input, KEY);
    if let Some(output) = &reading.output {
        let text = output.to_string();
        assert!(!text.contains(KEY), "a key is in the output");
        assert!(text.len() <= 1 << 20, "{} bytes of output", text.len());
    }
    assert!(reading.tools.is_none_or(|count| count <= 257));
    if let Some(rest) = &reading.rest {
        assert!(rest.len() <= input.len().max(1_024), "a message grows");
    }
}

/// A response of a data service.
pub(crate) fn run_envelope(input: &[u8]) {
    let principal: Principal = PRINCIPAL.parse().expect("a principal");
    let Some(payload) = fuzzing::read_envelope(input, &principal) else {
        return;
    };
    // Read by a parser that knows nothing of envelopes.
    let members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(input).expect("an envelope is JSON");
    let member = |name: &str| -> Value {
        let raw = members.get(name).expect("an envelope has the member");
        serde_json::from_str(raw.get()).expect("what was read can be read")
    };
    assert_eq!(
        member("principal"),
        PRINCIPAL,
        "a payload for somebody else"
    );
    assert_eq!(member("payload"), payload);
}
