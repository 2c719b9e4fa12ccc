//! Keys are sent to the service and never returned or logged.

use super::*;
use crate::tests::support::LogCapture;

// G6
#[tokio::test]
async fn key_is_in_no_result_failure_or_log() {
    let logs = LogCapture::start();
    // A service that echoes its request.
    for status in [200, 403] {
        let site = FakeSite::open(move |request| response(status, "text/plain", request)).await;
        let mut def = http(ToolMethod::Get, &site.url);
        def.headers
            .push(("x-api-version".into(), "2022-11-28".into()));
        def.headers
            .push(("X-Api-Key".into(), "another-secret".into()));
        def.query.push(("api_key".into(), "a-third-secret".into()));
        let seen = match run(&def, json!({})).await {
            Ok(result) => result.to_string(),
            Err(failure) => failure.message,
        };
        assert!(seen.contains("authorization: ***"), "{seen}");
        assert!(!seen.contains("sk-pack-key"), "{seen}");
        assert!(!seen.contains("another-secret"), "{seen}");
        assert!(!seen.contains("a-third-secret"), "{seen}");
        assert!(seen.contains("2022-11-28"), "what is no key stays: {seen}");
    }
    let site = FakeSite::with_response("nonsense").await;
    let (_, message) = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(message, "The service could not be reached.");
    let received = logs.log();
    assert!(!received.contains("sk-pack-key"), "{received}");
    let bad = http(ToolMethod::Get, "https://x.example").headers;
    let bad = HttpDef {
        headers: [bad, vec![("x-key".into(), "sk-pack\nkey".into())]].concat(),
        ..http(ToolMethod::Get, "https://x.example")
    };
    let reason = build(&bad, None).err().expect("a header");
    assert!(
        reason.contains("x-key") && !reason.contains("sk-pack"),
        "{reason}"
    );
}

// G6
#[tokio::test]
async fn key_is_hidden_in_every_notation() {
    let key = "sk/pack key+1";
    let bodies = [
        // Escaped, encoded, as a name, deep inside, and in an address of its own.
        r#"{"got": "sk\/pack key+1"}"#,
        r#"{"got": "\u0073k\/pack\u0020key+1"}"#,
        r#"{"sk/pack key+1": [{"a": "x sk/pack key+1 y"}]}"#,
        r#"{"next": "https://x.example/?api_key=sk%2Fpack%20key%2B1&page=2"}"#,
        r#"{"next": "https://x.example/?api_key=sk%2fpack+key%2b1&page=2"}"#,
        r#"{"own": "url-own-secret", "number": 1234567890}"#,
        "plain sk/pack key+1 and sk%2Fpack%20key%2B1 and sk\\/pack key+1",
    ];
    for status in [200, 403] {
        for body in bodies {
            let kind = match body.starts_with('{') {
                true => "application/json",
                false => "text/plain",
            };
            let site = FakeSite::with_response(response(status, kind, body)).await;
            let mut def = http(
                ToolMethod::Get,
                format!("{}/?token=url-own-secret&pass=1234567890", site.url),
            );
            def.query.push(("api_key".into(), key.into()));
            let seen = match run(&def, json!({})).await {
                Ok(result) => result.to_string(),
                Err(failure) => failure.message,
            };
            assert!(seen.contains("***"), "{seen}");
            for part in ["pack", "url-own", "1234567890"] {
                assert!(!seen.contains(part), "{seen}");
            }
        }
    }
    // The pieces around a field of the input are the pack's too.
    let site = FakeSite::with_response(response(200, "text/plain", "half-a-secret-x")).await;
    let mut def = http(ToolMethod::Get, &site.url);
    def.query.push(("key".into(), "half-a-secret-{n}".into()));
    let seen = run(&def, json!({"n": "x"})).await.expect("a result");
    assert_eq!(seen["body"], "***x");
}
