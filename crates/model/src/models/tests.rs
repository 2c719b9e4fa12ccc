//! Lookup of providers by model name. A name needs a known provider and a model; a later provider
//! of a name replaces the earlier one.

use futures_util::StreamExt as _;

use super::*;
use crate::provider::DeltaStream;
use crate::request::ModelRequest;
use crate::script::ModelScript;

struct EmptyProvider;

impl ModelProvider for EmptyProvider {
    fn stream(&self, _: ModelRequest) -> DeltaStream {
        futures_util::stream::empty().boxed()
    }
}

fn scripted() -> Option<ScriptedProvider> {
    let script = ModelScript::parse("s.yaml", "- {steps: [{text: hi}]}");
    Some(ScriptedProvider::new(script.expect("a script")))
}

#[test]
fn provider_lookup_needs_a_known_provider_and_a_model_name() {
    let local: Arc<dyn ModelProvider> = Arc::new(EmptyProvider);
    let set = ProviderTable::new(scripted()).with("local", Arc::clone(&local));
    assert_eq!(set.names().collect::<Vec<_>>(), ["local", "scripted"]);
    for served in ["scripted:default", "local:big", "local:a:b", "local:x/y"] {
        assert!(set.provider(served).is_some(), "{served}");
    }
    for unserved in ["", ":", "local", "local:", ":big", "other:big", "Local:big"] {
        assert!(set.provider(unserved).is_none(), "{unserved}");
    }
    let provider = set.provider("local:big").expect("served");
    assert!(Arc::ptr_eq(&provider, &local));
}

#[test]
fn later_provider_of_a_name_replaces_the_earlier_one() {
    let first: Arc<dyn ModelProvider> = Arc::new(EmptyProvider);
    let last: Arc<dyn ModelProvider> = Arc::new(EmptyProvider);
    let set = ProviderTable::new(None)
        .with("tape", first)
        .with("tape", Arc::clone(&last));
    assert!(set.provider("scripted:default").is_none());
    assert!(Arc::ptr_eq(&set.provider("tape:x").expect("served"), &last));
}
