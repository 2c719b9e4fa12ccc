//! Which model serves a turn: routing rules, fallback models, and rules that change on a running
//! server (R-16, S3-104, D-47, C-19).

use rustix::process::Signal;
use serde_json::{Value, json};
use turnwire_e2e::chat::until;
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, json_of};
use turnwire_e2e::models::{KEY, ModelEntry, fields, options, pack, payloads};
use turnwire_event::EventType;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::{
    AnswerProgress, Dialect, FakeProvider, MessagePart, ModelMessage, ProviderAnswer,
    ProviderError, TokenCounts,
};
use turnwire_testkit::watch::{SubscribeOptions, WatchFrame};

const TENANT: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";

const RULES: &str = "\
version: policy-1
rules:
  - {name: own_tenant, when: {tenant: [3c33212c-d119-4ef1-8db0-2ca93cd3b2dd]}, use: 'first:tenant'}
  - {name: dear, when: {cost_above_usd: 0.01}, use: 'first:cheap'}
  - {name: nights, when: {kind: scheduled}, use: 'first:night'}
  - {name: shops, when: {agent: shop}, use: 'second:shop'}
  - {name: germans, when: {locale: [de, fr]}, use: 'second:german'}
default: {use: 'first:usual', fallback: ['second:spare']}
";

/// A stage with two providers and rules.
struct RoutingFixture {
    first: FakeProvider,
    second: FakeProvider,
    engine: EngineFixture,
}

impl RoutingFixture {
    async fn new(rules: &str) -> Self {
        let (first, second) = (FakeProvider::start().await, FakeProvider::start().await);
        first.require_key(KEY);
        second.require_key(KEY);
        let ccs = FakeDataService::start().await;
        let pack = Self::pack(&ccs, &first, &second, rules);
        let engine = EngineFixture::on(ccs, options(pack)).await;
        Self {
            first,
            second,
            engine,
        }
    }

    fn pack(
        ccs: &FakeDataService,
        first: &FakeProvider,
        second: &FakeProvider,
        rules: &str,
    ) -> TestPack {
        let entries = [
            ModelEntry::new("first", Dialect::Chat, &first.base_url()),
            ModelEntry::new("second", Dialect::Anthropic, &second.base_url()),
        ];
        pack(&ccs.url(), &entries).put("routing.yaml", rules)
    }

    /// The pack with other rules, as an editor would save it.
    fn rewrite(&mut self, rules: &str) {
        let pack = Self::pack(&self.engine.ccs, &self.first, &self.second, rules);
        self.engine.server.repack(pack);
        self.engine.server.signal(Signal::HUP);
    }

    /// The models that were asked, in order.
    fn asked(of: &FakeProvider) -> Vec<Value> {
        let calls = of.calls().into_iter();
        calls.map(|mut call| call.body["model"].take()).collect()
    }
}

/// What was decided in a turn: model and reason.
fn routes(events: &[Value]) -> Vec<(Value, Value)> {
    let decided = payloads(events, "route.decided").into_iter();
    decided
        .map(|route| (route["model"].clone(), route["reason"].clone()))
        .collect()
}

fn route(model: &str, reason: &str) -> (Value, Value) {
    (json!(model), json!(reason))
}

// R-16, D-47, C-19
#[tokio::test]
async fn routing_rules_choose_the_model() {
    let fixture = RoutingFixture::new(RULES).await;
    let (first, second, engine) = (&fixture.first, &fixture.second, &fixture.engine);
    // Nothing special: the default.
    first.push(ModelMessage::text(["Hello."]));
    let reply = engine.ask("Hi!").await;
    let events = engine.events(reply.turn).await;
    assert_eq!(routes(&events), [route("first:usual", "default")]);
    let decided = payloads(&events, "route.decided")[0];
    assert_eq!(decided["routing_policy_version"], "policy-1");
    assert_eq!(
        decided["candidates"],
        json!(["first:usual", "second:spare"])
    );
    // A language and its variant match a rule; another language matches none.
    for (locale, model, reason) in [
        ("de", "second:german", "rule germans"),
        ("de-AT", "second:german", "rule germans"),
        ("fr-CA", "second:german", "rule germans"),
        ("den", "first:usual", "default"),
    ] {
        let provider = if model.starts_with("first") {
            first
        } else {
            second
        };
        provider.push(ModelMessage::text(["So."]));
        let reply = engine
            .submit(ChatSubmit::new("Hi!").field("locale", locale))
            .await;
        let events = engine.events(reply.turn).await;
        assert_eq!(routes(&events), [route(model, reason)], "{locale}");
    }
    // A sub-agent has its own rule; the session's model stays that of the one that speaks.
    let ask = MessagePart::call("call_1", "ask_shop", &json!({"query": "oat milk"}));
    first.push(ModelMessage::new([ask]));
    second.push(ModelMessage::text(["Two offers."]));
    let dear = TokenCounts {
        input: 0,
        output: 2_000,
        cached: 0,
        cache_write: 0,
        reasoning: 0,
    };
    first.push(ModelMessage::text(["Two of them."]).usage(dear));
    let reply = engine.ask("Offers?").await;
    assert_eq!(reply.text(), "Two of them.");
    let events = engine.events(reply.turn).await;
    assert_eq!(routes(&events), [route("first:usual", "default")]);
    assert_eq!(
        fields(&events, "llm.call_started", "model"),
        ["first:usual", "second:shop", "first:usual"]
    );
    // The session has cost two cents by now.
    first.push(ModelMessage::text(["Cheap."]));
    let reply = engine.ask("And now?").await;
    let events = engine.events(reply.turn).await;
    assert_eq!(routes(&events), [route("first:cheap", "rule dear")]);
    let row = engine.api.attach(engine.session).await.expect("an answer");
    assert_eq!(row["active_model"], "first:cheap");
    // Another session has cost nothing; the night has its own model.
    let session = engine.api.create().await.expect("a session");
    first.push(ModelMessage::text(["Good night."]));
    let path = format!("/sessions/{session}/turns");
    let body = json!({"message": "Hi!", "origin": "scheduled"});
    let answer = engine.api.post(&path, body).await.expect("an answer");
    assert_eq!(answer.status, 202, "{}", answer.body);
    let turn = answer.json()["turn_id"]
        .as_str()
        .and_then(|id| id.parse().ok());
    let turn = turn.expect("a turn");
    engine.api.ended(turn).await.expect("an end");
    assert_eq!(
        routes(&engine.log(session).await),
        [route("first:night", "rule nights")]
    );
    // And so has a tenant, whatever else holds.
    let tenant_api = engine.api.clone().with("x-tenant-id", TENANT);
    let session = tenant_api.create().await.expect("a session");
    first.push(ModelMessage::text(["Yours."]));
    let question = ChatSubmit::new("Hi!")
        .session(session)
        .field("locale", "de");
    turnwire_e2e::chat::whole(&tenant_api, "a tenant", &question).await;
    let wanted = [
        "usual", "usual", "usual", "usual", "cheap", "night", "tenant",
    ];
    assert_eq!(RoutingFixture::asked(first), wanted);
    assert_eq!(
        RoutingFixture::asked(second),
        ["german", "german", "german", "shop"]
    );
    engine.check_history().await;
}

#[tokio::test]
async fn fallback_is_used_only_before_first_token() {
    let fixture = RoutingFixture::new(RULES).await;
    let (first, second, engine) = (&fixture.first, &fixture.second, &fixture.engine);
    for (trouble, tries, class) in [
        (ProviderError::Unavailable, 3, "provider"),
        (ProviderError::RateLimited, 3, "rate_limited"),
        (ProviderError::Unauthorized, 1, "provider"),
    ] {
        for _ in 0..tries {
            first.push(ProviderAnswer::refuse(trouble));
        }
        // The one that stands in stays for the rest of the turn.
        let call = MessagePart::call("call_1", "say_back", &json!({"text": "eins"}));
        second.push(ModelMessage::new([MessagePart::text(["Instead. "]), call]));
        second.push(ModelMessage::text(["Done."]));
        let reply = engine.ask("Hi!").await;
        assert_eq!(reply.text(), "Instead. Done.", "{trouble:?}");
        let events = engine.events(reply.turn).await;
        let reason = format!("fallback after {class}");
        let wanted = [
            route("first:usual", "default"),
            route("second:spare", &reason),
        ];
        assert_eq!(routes(&events), wanted, "{trouble:?}");
        let versions = fields(&events, "route.decided", "routing_policy_version");
        assert_eq!(versions, ["policy-1", "policy-1"]);
        let mut models = vec![json!("first:usual"); tries];
        models.extend([json!("second:spare"), json!("second:spare")]);
        assert_eq!(
            fields(&events, "llm.call_started", "model"),
            models,
            "{trouble:?}"
        );
        let failed = fields(&events, "llm.call_failed", "error_class");
        assert_eq!(failed, vec![json!(class); tries], "{trouble:?}");
        assert_eq!(payloads(&events, "turn.completed")[0]["status"], "ok");
        let row = engine.api.attach(engine.session).await.expect("an answer");
        assert_eq!(row["active_model"], "second:spare", "{trouble:?}");
    }
    // The next turn begins with the first again; after a word there is no other.
    let before = second.calls().len();
    first.push(ProviderAnswer::text(["One ", "two ", "three."]).cut_inside(2));
    let reply = engine.ask("Hi!").await;
    let events = engine.events(reply.turn).await;
    assert_eq!(routes(&events), [route("first:usual", "default")]);
    assert_eq!(
        (reply.last().event(), second.calls().len()),
        ("error", before)
    );
    // Nobody is left: the last one's failure is the turn's.
    for _ in 0..3 {
        first.push(ProviderAnswer::refuse(ProviderError::Server));
        second.push(ProviderAnswer::refuse(ProviderError::RateLimited));
    }
    let reply = engine.ask("Hi!").await;
    assert_eq!(reply.errors()[0].0, json!({"code": "RATE_LIMIT_ERROR"}));
    let events = engine.events(reply.turn).await;
    assert_eq!(fields(&events, "llm.call_failed", "error_class").len(), 6);
    engine.check_history().await;
}

/// The version that a snapshot shows.
async fn snapshot(engine: &EngineFixture) -> Value {
    let client = turnwire_testkit::watch::WatchClient::connect(&engine.api, "late", engine.session);
    let mut client = client.await.expect("a connection");
    client
        .subscribe(&SubscribeOptions::snapshot())
        .await
        .expect("asked");
    loop {
        if let WatchFrame::Frame(frame) = client.next().await.expect("a frame")
            && frame["type"] == "snapshot"
        {
            return frame["session"]["routing_policy_version"].clone();
        }
    }
}

// S3-104
#[tokio::test]
async fn new_routing_rules_are_announced_running_turn_keeps_own() {
    let mut fixture = RoutingFixture::new(RULES).await;
    let idle = fixture.engine.api.create().await.expect("a session");
    assert_eq!(snapshot(&fixture.engine).await, "policy-1");
    let mut client = fixture.engine.watch("here", SubscribeOptions::live()).await;
    // A turn is in the middle of its first call.
    let call = MessagePart::call("call_1", "say_back", &json!({"text": "eins"}));
    let first_call = ModelMessage::new([MessagePart::text(["Look. "]), call]);
    fixture
        .first
        .push(ProviderAnswer::message(first_call).stall_at(2));
    let accepted = fixture
        .engine
        .api
        .submit(fixture.engine.session, "go")
        .await;
    let turn = accepted.expect("an answer").turn_id;
    fixture.first.reached(0, AnswerProgress::Held).await;
    let new = RULES
        .replace("policy-1", "policy-2")
        .replace("first:usual", "second:new");
    fixture.rewrite(&new);
    let kind = EventType::RoutingPolicyReloaded;
    let seen = client
        .until(|event| event.body.kind() == kind)
        .await
        .expect("news");
    let event = json_of(&seen).pop().expect("it");
    assert_eq!(
        (&event["payload"], &event["turn_id"]),
        (
            &json!({"routing_policy_version": "policy-2", "previous_version": "policy-1"}),
            &Value::Null
        )
    );
    assert_eq!(snapshot(&fixture.engine).await, "policy-2");
    fixture.first.push(ModelMessage::text(["Done."]));
    fixture.first.release(0);
    client.turn(turn).await.expect("the end");
    let events = fixture.engine.events(turn).await;
    assert_eq!(
        routes(&events),
        [route("first:usual", "default")],
        "it keeps its route"
    );
    assert_eq!(RoutingFixture::asked(&fixture.first), ["usual", "usual"]);
    // The next turn goes by the new rules.
    fixture.second.push(ModelMessage::text(["New."]));
    let reply = fixture.engine.ask("And now?").await;
    let events = fixture.engine.events(reply.turn).await;
    let decided = payloads(&events, "route.decided")[0];
    assert_eq!(decided["routing_policy_version"], "policy-2");
    assert_eq!(reply.text(), "New.");
    // Nobody was in the other session, and nothing was written there.
    let log = fixture.engine.log(idle).await;
    assert!(
        log.iter()
            .all(|event| event["type"] != "routing.policy_reloaded"),
        "{log:?}"
    );
    fixture.engine.check_history().await;
}

// S3-104
#[tokio::test]
async fn broken_routing_rules_are_reported_and_ignored() {
    let mut fixture = RoutingFixture::new(RULES).await;
    let mut client = fixture.engine.watch("here", SubscribeOptions::live()).await;
    for (broken, word) in [
        ("version: [", "routing.yaml"),
        (
            "rules:\n  - {name: x, wenn: {locale: de}, use: 'first:a'}\n",
            "wenn",
        ),
        ("default: {use: 'nobody:a'}\n", "nobody"),
    ] {
        let seen = fixture.engine.server.stderr().len();
        fixture.rewrite(broken);
        until("the mistake is told", || async {
            let stderr = fixture.engine.server.stderr();
            let new = stderr.get(seen..).unwrap_or_default();
            new.contains("routing.yaml") && new.contains(word) && new.contains("not applied")
        })
        .await;
        fixture.first.push(ModelMessage::text(["As before."]));
        let reply = fixture.engine.ask("Hi!").await;
        let events = fixture.engine.events(reply.turn).await;
        assert_eq!(routes(&events), [route("first:usual", "default")], "{word}");
    }
    assert_eq!(snapshot(&fixture.engine).await, "policy-1");
    // A version that is not written is a digest: other rules are another one.
    fixture.rewrite("default: {use: 'second:a'}\n");
    let kind = EventType::RoutingPolicyReloaded;
    let seen = client
        .until(|event| event.body.kind() == kind)
        .await
        .expect("news");
    let reloads: Vec<_> = seen
        .iter()
        .filter(|event| event.body.kind() == kind)
        .collect();
    assert_eq!(reloads.len(), 1, "none of the broken ones was told");
    let version = snapshot(&fixture.engine).await;
    assert_ne!(version, "policy-1");
    fixture.second.push(ModelMessage::text(["New."]));
    let reply = fixture.engine.ask("Hi!").await;
    let events = fixture.engine.events(reply.turn).await;
    assert_eq!(
        payloads(&events, "route.decided")[0]["routing_policy_version"],
        version
    );
    fixture.engine.check_history().await;
}
