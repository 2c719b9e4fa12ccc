//! Who is found under which name.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use super::*;
use crate::delta::{Delta, ModelError};
use crate::request::Request;
use crate::script::Script;

struct Silent;

impl Provider for Silent {
    fn stream(&self, _: Request) -> BoxStream<'static, Result<Delta, ModelError>> {
        futures_util::stream::empty().boxed()
    }
}

fn scripted() -> Option<Scripted> {
    let script = Script::parse("s.yaml", "- {steps: [{text: hi}]}");
    Some(Scripted::new(script.expect("a script")))
}

#[test]
fn a_model_is_found_by_its_provider_and_needs_a_name_of_its_own() {
    let local: Arc<dyn Provider> = Arc::new(Silent);
    let set = ModelSet::new(scripted()).with("local", Arc::clone(&local));
    assert_eq!(set.names().collect::<Vec<_>>(), ["local", "scripted"]);
    for served in ["scripted:default", "local:big", "local:a:b", "local:x/y"] {
        assert!(set.provider(served).is_some(), "{served}");
    }
    for nobody in ["", ":", "local", "local:", ":big", "other:big", "Local:big"] {
        assert!(set.provider(nobody).is_none(), "{nobody}");
    }
    let found = set.provider("local:big").expect("served");
    assert!(Arc::ptr_eq(&found, &local));
}

#[test]
fn without_a_script_nothing_scripted_is_served_and_the_last_of_a_name_counts() {
    let first: Arc<dyn Provider> = Arc::new(Silent);
    let last: Arc<dyn Provider> = Arc::new(Silent);
    let set = ModelSet::new(None)
        .with("tape", first)
        .with("tape", Arc::clone(&last));
    assert!(set.provider("scripted:default").is_none());
    assert!(Arc::ptr_eq(&set.provider("tape:x").expect("served"), &last));
}
