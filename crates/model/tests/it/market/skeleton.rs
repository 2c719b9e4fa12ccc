//! The script of a new pack, as `init` writes it, played for one turn. The orchestrator calls the
//! helper, and the helper calls the clock.

use serde_json::json;
use turnwire_model::{ModelScript, ProviderTable, ScriptedProvider};
use turnwire_pack::PackFiles;

use super::{after, call, request};

// S2-001
#[tokio::test(start_paused = true)]
async fn script_of_a_new_pack_plays_a_turn() {
    let files = PackFiles::skeleton("corner_shop");
    let pack = turnwire_pack::check(&files, &|_| None)
        .pack
        .expect("a pack");
    let script = ModelScript::parse_many(&pack.scripts).expect("a script");
    let models = ProviderTable::new(Some(ScriptedProvider::new(script)));

    let question = request("orchestrator", "en", "What time is it?");
    let (_, tools) = call(&models, question.clone()).await;
    let query = json!({"query": "What time is it?"});
    assert_eq!(tools, [("ask_helper".to_owned(), query)]);

    let (_, tools) = call(&models, request("helper", "en", "What time is it?")).await;
    assert_eq!(tools, [("clock".to_owned(), json!({}))]);
    let results = [("clock", Ok(json!("noon")))];
    let helper_request = after(request("helper", "en", "What time is it?"), &results);
    assert_eq!(call(&models, helper_request).await.0, "It is noon.");

    let results = [("ask_helper", Ok(json!({"text": "It is noon."})))];
    let (text, tools) = call(&models, after(question, &results)).await;
    assert_eq!(text, "I asked the helper. It is noon.");
    assert!(tools.is_empty());
}
