//! Resources of another tenant or principal answer as missing (law 10, G1).

use hyper::Method;
use serde_json::json;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::ScriptStep;
use turnwire_testkit::watch::WatchClient;

const OTHER_TENANT: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";

// G1
#[tokio::test]
async fn foreign_and_missing_are_answered_alike() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let turn = fixture.turn("x").await[0]
        .turn_id
        .expect("a turn")
        .to_string();
    let session = fixture.session.to_string();
    let (no_session, no_turn) = (
        "sess_00000000000000000000000001",
        "00000000000000000000000001",
    );
    let requests = |session: &str, turn: &str| {
        let text = json!({"message": "hi"}).to_string();
        let rating = json!({"turn_id": turn, "rating": "up"}).to_string();
        let approval_id = "appr_00000000000000000000000001";
        let answer = json!({"approval_id": approval_id, "decision": "approve"}).to_string();
        vec![
            (Method::GET, format!("/sessions/{session}"), None),
            (Method::GET, format!("/sessions/{session}/events"), None),
            (Method::GET, format!("/sessions/{session}/messages"), None),
            (Method::GET, format!("/sessions/{session}/turns"), None),
            (Method::GET, format!("/sessions/{session}/tool-calls"), None),
            (Method::GET, format!("/sessions/{session}/llm-calls"), None),
            (Method::GET, format!("/sessions/{session}/workers"), None),
            (
                Method::POST,
                format!("/sessions/{session}/turns"),
                Some(text),
            ),
            (
                Method::POST,
                format!("/sessions/{session}/feedback"),
                Some(rating),
            ),
            (Method::GET, format!("/turns/{turn}"), None),
            (Method::POST, format!("/turns/{turn}/cancel"), None),
            (Method::POST, format!("/sessions/{session}/cancel"), None),
            (Method::GET, format!("/turns/{turn}/approvals"), None),
            (
                Method::GET,
                format!("/turns/{turn}/approvals/{approval_id}"),
                None,
            ),
            (
                Method::POST,
                format!("/turns/{turn}/approvals"),
                Some(answer),
            ),
            (Method::DELETE, format!("/sessions/{session}"), None),
        ]
    };
    let strangers: [ApiClient; 2] = [
        fixture.api.clone().with("x-tenant-id", OTHER_TENANT),
        fixture.api.clone().with("x-turnwire-principal", "mallory"),
    ];
    for stranger in strangers {
        let pairs = requests(&session, &turn)
            .into_iter()
            .zip(requests(no_session, no_turn));
        for ((method, foreign, body), (_, missing, other)) in pairs {
            let one = stranger
                .send(method.clone(), &foreign, body.as_deref())
                .await
                .expect("an answer");
            let two = stranger
                .send(method.clone(), &missing, other.as_deref())
                .await
                .expect("an answer");
            assert_eq!(one.status, 404, "{method} {foreign}: {}", one.body);
            assert_eq!(one.essence(), two.essence(), "{method} {foreign}");
        }
        let list = stranger.get("/sessions").await.expect("an answer").json();
        assert_eq!(list["sessions"], json!([]));
    }
    // The owner still has everything.
    let own = fixture
        .api
        .get(&format!("/sessions/{session}"))
        .await
        .expect("an answer");
    assert_eq!(own.status, 200);
    fixture.check_history().await;
}

// G1
#[tokio::test]
async fn principal_sees_only_its_own_sessions() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let anna = fixture.api.clone().with("x-turnwire-principal", "anna");
    let mine = anna.create().await.expect("a session");
    let list = anna.get("/sessions").await.expect("an answer").json();
    let ids: Vec<&str> = list["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|s| s["session_id"].as_str())
        .collect();
    assert_eq!(ids, [mine.to_string()]);
    let url = anna.attach(mine).await.expect("an answer")["ws_url"].to_string();
    // The token is what opens the stream; no header is needed with it.
    assert!(
        WatchClient::open(&fixture.api, "anna", mine, url.trim_matches('"'), None)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn non_uuid_tenant_is_refused() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let odd = fixture.api.clone().with("x-tenant-id", "acme");
    let answer = odd.get("/sessions").await.expect("an answer");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "tenant_invalid")
    );
    let odd = fixture.api.clone().with("x-turnwire-principal", "a b");
    assert_eq!(odd.get("/sessions").await.expect("an answer").status, 422);
}
