//! The script of a pack that `init` has just written, played for one turn.

use serde_json::json;
use turnwire_model::{Script, Scripted, ScriptedModels};
use turnwire_pack::PackFiles;

use super::{after, call, request};

#[tokio::test(start_paused = true)]
async fn s2_001_the_script_of_a_new_pack_plays_a_turn() {
    let files = PackFiles::skeleton("corner_shop");
    let pack = turnwire_pack::check(&files, &|_| None)
        .pack
        .expect("a pack");
    let script = Script::parse_many(&pack.scripts).expect("a script");
    let models = ScriptedModels::new(Some(Scripted::new(script)));

    let asked = request("orchestrator", "en", "What time is it?");
    let (_, tools) = call(&models, asked.clone()).await;
    let query = json!({"query": "What time is it?"});
    assert_eq!(tools, [("ask_helper".to_owned(), query)]);

    let (_, tools) = call(&models, request("helper", "en", "What time is it?")).await;
    assert_eq!(tools, [("clock".to_owned(), json!({}))]);
    let told = [("clock", Ok(json!("noon")))];
    let helped = after(request("helper", "en", "What time is it?"), &told);
    assert_eq!(call(&models, helped).await.0, "It is noon.");

    let told = [("ask_helper", Ok(json!({"text": "It is noon."})))];
    let (words, tools) = call(&models, after(asked, &told)).await;
    assert_eq!(words, "I asked the helper. It is noon.");
    assert!(tools.is_empty());
}
