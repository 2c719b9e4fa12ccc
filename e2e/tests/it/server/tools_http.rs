//! HTTP tools with the real binary: a model calls them, a fake site answers. Redirects do not reach
//! internal addresses, keys and tokens go only where they belong, and no socket stays open.

use serde_json::{Value, json};
use turnwire_e2e::chat::{assert_no_errors_logged, until, whole};
use turnwire_e2e::engine::{asks, of, only, working};
use turnwire_e2e::models::{ProviderFixture, fields, payloads};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage};
use turnwire_testkit::server::{ServerOptions, ServerPack, TestServer};
use turnwire_testkit::site::{FakeSite, SitePage};

/// The variable with the key of the site, and the key.
const KEY_NAME: &str = "WEATHER_KEY";
const KEY: &str = "wk-41c09e77ab";

/// Four tools of one site, in the hands of the one who speaks.
fn approvals(site: &FakeSite) -> impl FnOnce(ServerOptions) -> ServerOptions {
    let tools = TOOLS.replace("SITE", &site.url());
    move |mut options| {
        if let ServerPack::Pack(pack) = &mut options.pack {
            *pack = pack
                .clone()
                .change("tools.yaml", "tools:\n", &format!("tools:\n{tools}"))
                .change("orchestrator.yaml", "tools: [", "tools: [weather, report, ");
        }
        options.env.push((KEY_NAME.to_owned(), KEY.to_owned()));
        options
    }
}

const TOOLS: &str = r#"
  - name: weather
    connector: http
    description: Tells the weather.
    method: GET
    url: "SITE/v1/{city}/now"
    query: {units: metric}
    headers: {authorization: "Bearer ${WEATHER_KEY}"}
    input_schema: {type: object, properties: {city: {type: string}, days: {type: integer}}, required: [city], additionalProperties: false}
    timeout_ms: 2000
    max_bytes: 4096
  - name: report
    connector: http
    description: Reports the weather.
    method: POST
    url: "SITE/v1/reports"
    headers: {authorization: "Bearer ${WEATHER_KEY}"}
    input_schema: {type: object}
"#;

fn call(n: u32, name: &str, input: Value) -> MessagePart {
    MessagePart::call(&format!("call_{n}"), name, &input)
}

/// The tool results that the model received: the whole of the next request.
async fn heard(setup: &ProviderFixture, number: usize) -> String {
    setup.fake.call(number).await.text
}

#[tokio::test]
async fn http_tool_calls_pack_address_and_returns_body() {
    let site = FakeSite::start().await;
    site.page(
        "/v1/St.%20P%C3%B6lten%2F../now",
        SitePage::json(&json!({"celsius": 21})),
    );
    site.page("/v1/reports", SitePage::new(201, "text/plain", "thanks"));
    let setup = ProviderFixture::with(Dialect::Anthropic, |entry| entry, approvals(&site)).await;
    setup.fake.push(ModelMessage::new([
        call(1, "weather", json!({"city": "St. Pölten/..", "days": 2})),
        call(2, "report", json!({"sky": "blue", "tags": [1]})),
    ]));
    setup.fake.push(ModelMessage::text(["Warm."]));
    let (reply, events) = setup.ask("How is it?").await;
    assert_eq!(reply.text(), "Warm.");
    assert_eq!(
        fields(&events, "tool.completed", "tool_type"),
        ["http", "http"]
    );
    let second = heard(&setup, 1).await;
    for part in [
        r#"\"celsius\":21"#,
        r#"\"status\":201"#,
        r#"\"body\":\"thanks\""#,
    ] {
        assert!(second.contains(part), "{part} in {second}");
    }
    let mut requests = site.requests();
    requests.sort_by(|a, b| a.line.cmp(&b.line));
    assert_eq!(
        requests[0].line,
        "GET /v1/St.%20P%C3%B6lten%2F../now?units=metric&days=2 HTTP/1.1"
    );
    assert_eq!(requests[1].line, "POST /v1/reports HTTP/1.1");
    assert_eq!(requests[1].body, r#"{"sky":"blue","tags":[1]}"#);
    setup.assert_no_rejections();
    setup.engine.check_history().await;
}

// R-06
#[tokio::test]
async fn http_tool_failures_are_typed_and_turn_goes_on() {
    let site = FakeSite::start().await;
    site.page("/v1/slow/now", SitePage::drip());
    site.page(
        "/v1/large/now",
        SitePage::new(200, "text/plain", &"x".repeat(5_000)),
    );
    site.page("/v1/circle/now", SitePage::redirect(302, "/v1/circle/now"));
    let inside = FakeSite::start().await;
    for (path, place) in [
        ("port", inside.url()),
        ("local", inside.url().replace("127.0.0.1", "localhost")),
        ("odd", inside.url().replace("127.0.0.1", "0x7f.1")),
        (
            "six",
            inside.url().replace("127.0.0.1", "[::ffff:127.0.0.1]"),
        ),
        (
            "cloud",
            "http://169.254.169.254/latest/meta-data".to_owned(),
        ),
        ("private", "http://10.0.0.1/".to_owned()),
        ("file", "file:///etc/passwd".to_owned()),
    ] {
        site.page(&format!("/v1/{path}/now"), SitePage::redirect(302, &place));
    }
    let setup = ProviderFixture::with(Dialect::Anthropic, |entry| entry, approvals(&site)).await;
    let internal = "internal";
    for (city, class, words) in [
        (
            json!("nowhere"),
            internal,
            "The service answered with status 404: no such page",
        ),
        (
            json!("slow"),
            "timeout",
            "The service did not answer in time.",
        ),
        (
            json!("large"),
            internal,
            "The response is larger than 4096 bytes.",
        ),
        (
            json!("circle"),
            internal,
            "The service redirected too often.",
        ),
        (json!("port"), internal, "The address is not allowed."),
        (json!("local"), internal, "The address is not allowed."),
        (json!("odd"), internal, "The address is not allowed."),
        (json!("six"), internal, "The address is not allowed."),
        (json!("cloud"), internal, "The address is not allowed."),
        (json!("private"), internal, "The address is not allowed."),
        (json!("file"), internal, "The address is not allowed."),
        (json!(".."), "invalid_input", "must not be empty"),
        (
            json!(7),
            "invalid_input",
            "The input does not fit at `/city`",
        ),
    ] {
        let before = setup.fake.calls().len();
        setup.fake.push(ModelMessage::new([call(
            1,
            "weather",
            json!({"city": city}),
        )]));
        setup.fake.push(ModelMessage::text(["Never mind."]));
        let (reply, events) = setup.ask("How is it?").await;
        assert_eq!(reply.text(), "Never mind.", "{city}");
        let failed = payloads(&events, "tool.failed");
        assert_eq!(failed.len(), 1, "{city}");
        assert_eq!(
            (&failed[0]["error_class"], &failed[0]["tool_type"]),
            (&json!(class), &json!("http")),
            "g5 {city}"
        );
        let second = heard(&setup, before + 1).await;
        assert!(second.contains(words), "{words} in {second}");
    }
    assert_eq!(inside.connections(), 0, "g5");
    until("no socket is left", || async {
        site.open_connections() == 0
    })
    .await;
    assert_no_errors_logged(&setup.engine.server);
    setup.engine.check_history().await;
}

// S3-073
#[tokio::test]
async fn cancel_closes_http_tool_socket_at_once() {
    let site = FakeSite::start().await;
    site.page("/v1/silent/now", SitePage::Silent);
    site.page("/v1/drip/now", SitePage::drip());
    let setup = ProviderFixture::with(
        Dialect::Anthropic,
        |entry| entry,
        |options| {
            let options = approvals(&site)(options);
            patient(options)
        },
    )
    .await;
    for (n, city) in ["silent", "drip"].into_iter().enumerate() {
        setup.fake.push(ModelMessage::new([call(
            1,
            "weather",
            json!({"city": city}),
        )]));
        let accepted = setup.engine.api.submit(setup.engine.session, "go").await;
        let turn = accepted.expect("an answer").turn_id;
        until("the site is asked", || async {
            site.requests().len() == n + 1
        })
        .await;
        setup.engine.api.cancel(turn).await.expect("an answer");
        setup.engine.api.ended(turn).await.expect("an end");
        until("the socket is closed", || async {
            site.open_connections() == 0
        })
        .await;
        assert!(site.requests()[n].closed, "{city}");
        let events = setup.engine.events(turn).await;
        let failed = &only(&events, "tool.failed")["payload"];
        assert_eq!(failed["error_class"], "cancelled", "{city}");
        let end = &only(&events, "turn.cancelled")["payload"];
        assert_eq!(end["phase"], "tool", "{city}");
        let receipt = end["receipt"].as_array().expect("a receipt");
        assert!(
            receipt.iter().any(|line| line["kind"] == "tool"),
            "{receipt:?}"
        );
        assert_eq!(of(&events, "tool.completed").count(), 0);
    }
    assert_eq!(site.connections(), 2, "nothing was tried again");
    setup.engine.check_history().await;
}

/// The site may take longer than any test does: what ends a call is the cancel.
fn patient(mut options: ServerOptions) -> ServerOptions {
    if let ServerPack::Pack(pack) = &mut options.pack {
        *pack = pack
            .clone()
            .change("tools.yaml", "timeout_ms: 2000", "timeout_ms: 60000");
    }
    options
}

// G6, G8
#[tokio::test]
async fn client_token_stays_and_site_key_goes_to_its_site_only() {
    let site = FakeSite::start().await;
    let other = FakeSite::start().await;
    // A redirect from one loopback port to another is let out only because it is listed.
    other.page("/", SitePage::new(200, "text/plain", "elsewhere"));
    site.page(
        "/v1/away/now",
        SitePage::redirect(302, &format!("{}/", other.url())),
    );
    site.page(
        "/v1/echo/now",
        SitePage::new(200, "text/plain", &format!("you sent Bearer {KEY}")),
    );
    site.page(
        "/v1/blame/now",
        SitePage::new(403, "text/plain", &format!("bad key {KEY}")),
    );
    let change = |options| approvals(&site)(options).set("dial", "allow", "127.0.0.0/8");
    let setup = ProviderFixture::with(Dialect::Anthropic, |entry| entry, change).await;
    let token = "client-token-5d1f0c";
    let api = setup
        .engine
        .api
        .clone()
        .with("authorization", &format!("Bearer {token}"));
    for city in ["away", "echo", "blame", "nowhere"] {
        setup.fake.push(ModelMessage::new([call(
            1,
            "weather",
            json!({"city": city}),
        )]));
        setup.fake.push(ModelMessage::text(["So."]));
        let question = ChatSubmit::new("How is it?").session(setup.engine.session);
        let (_, frames) = whole(&api, city, &question).await;
        let frames = format!("{frames:?}");
        assert!(!frames.contains(KEY) && !frames.contains(token), "{frames}");
    }
    assert_eq!(site.requests().len(), 4);
    for asked in site.requests() {
        assert!(
            asked.head.contains(&format!("authorization: Bearer {KEY}")),
            "{}",
            asked.head
        );
        for secret in [token, "user-42", "x-turnwire"] {
            assert!(!asked.head.contains(secret), "g8: {}", asked.head);
        }
    }
    assert_eq!(other.requests().len(), 1);
    let away = &other.requests()[0].head;
    assert!(
        !away.contains(KEY) && !away.contains("authorization"),
        "{away}"
    );
    let log = setup.engine.server.stderr();
    let stored = json!(setup.engine.log(setup.engine.session).await).to_string();
    let models: String = setup
        .fake
        .calls()
        .into_iter()
        .map(|call| call.text)
        .collect();
    for (place, text) in [("the log", &log), ("events", &stored), ("a model", &models)] {
        for secret in [KEY, token] {
            assert!(!text.contains(secret), "{secret} is in {place}: {text}");
        }
    }
    assert!(models.contains("you sent ***"), "{models}");
    setup.engine.check_history().await;
}

#[tokio::test]
async fn invalid_http_tool_is_named_at_start() {
    let site = FakeSite::start().await;
    let url = "SITE/v1/{city}/now";
    let at_url = "tools.yaml:7:10: error: the url";
    for (from, to, wanted) in [
        (url, "http://{city}/now", at_url),
        (url, "http://0x7f.1/{city}", at_url),
        (url, "http://169.254.169.254/{city}", at_url),
        (url, "file:///etc/{city}", at_url),
        (
            "{type: object}",
            "{type: sideways}",
            "tools.yaml:19:19: error: `input_schema` is not a JSON Schema",
        ),
    ] {
        let tools = TOOLS.replace(from, to).replace("SITE", &site.url());
        let tools = format!("tools:\n{tools}");
        let pack = TestPack::market("http://127.0.0.1:9")
            .script(&working(asks(&["shop"], "Hello.")))
            .change("tools.yaml", "tools:\n", &tools)
            .change("orchestrator.yaml", "tools: [", "tools: [weather, report, ");
        let mut options = ServerOptions::pack(pack);
        options.env.push((KEY_NAME.to_owned(), KEY.to_owned()));
        let journal = Journal::new();
        let error = TestServer::try_start(options, journal).await.expect_err(to);
        assert!(error.stderr.contains(wanted), "{to}: {error}");
        assert_eq!(error.stderr.matches("error:").count(), 1, "{to}: {error}");

        assert!(!error.stderr.contains(KEY), "{error}");
    }
    assert_eq!(site.connections(), 0);
}
