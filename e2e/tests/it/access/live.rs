//! Connections whose identity ends while they are open, and those that renew it.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::code::TurnState;
use turnwire_identity::Scope;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::{ChatStream, ChatSubmit, CursorPlacement};
use turnwire_testkit::issuer::SigningKey;
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::site::SitePage;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchEnd, WatchFrame};

use super::fixture::*;

async fn watching(api: &ApiClient, name: &str) -> (WatchClient, turnwire_event::SessionId) {
    let session = api.create().await.expect("a session");
    let mut client = WatchClient::connect(api, name, session)
        .await
        .expect("connected");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("subscribed");
    (client, session)
}

/// The next frame that is no event.
async fn next_frame(client: &mut WatchClient) -> Value {
    loop {
        if let WatchFrame::Frame(frame) = client.next().await.expect("an answer") {
            return frame;
        }
    }
}

/// The close code and its name.
fn closed(end: &WatchEnd) -> (u16, String) {
    match end {
        WatchEnd::Closed(code, _) => (*code, end.code()),
        other => panic!("not closed: {other}"),
    }
}

async fn state(api: &ApiClient, turn: turnwire_event::TurnId) -> String {
    let turn = api.turn(turn).await.expect("a turn");
    turn["state"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn revoked_token_closes_its_connections_and_cancels_nothing() {
    let fixture = TokenServer::start(ServerOptions::script(slow_script())).await;
    let (first, id) = fixture.token("ann", &[Scope::Own]).await;
    let (second, _) = fixture.token("ann", &[Scope::Own]).await;
    let (leaving, staying) = (
        with_token(&fixture.server, &first),
        with_token(&fixture.server, &second),
    );
    let (mut client, session) = watching(&leaving, "revoked").await;
    let (mut other, _) = watching(&staying, "other").await;
    // A session whose turn is cancelled when its last client leaves.
    let body = json!({"message": "slow", "on_disconnect": "cancel"});
    let path = format!("/sessions/{session}/turns");
    let answer = leaving.post(&path, body).await.expect("an answer");
    let turn = answer.json()["turn_id"]
        .as_str()
        .expect("a turn")
        .parse()
        .expect("an id");
    // A chat stream whose turn is cancelled when its client leaves.
    let submit = ChatSubmit::new("slow");
    let mut stream = ChatStream::submit(&leaving, "stream", &submit)
        .await
        .expect("a stream");
    stream.until("text").await.expect("text");

    fixture.file.revoke(&id).expect("revoked");
    let end = client.end().await;
    assert_eq!(closed(&end), (1008, "identity_revoked".into()));
    let cut = stream.read_to_end().await.expect_err("cut");
    assert!(cut.to_string().starts_with("lost"), "{cut}");
    fixture.until_status(&first, |status| status == 401).await;
    assert_eq!(state(&staying, turn).await, "running");
    assert_eq!(state(&staying, stream.turn()).await, "running");
    // The other connection of the same person is not affected.
    let nonce = json!({"type": "ping", "nonce": "1"});
    other.send(&nonce).await.expect("sent");
    assert_eq!(next_frame(&mut other).await["type"], "pong");

    // With the other token nothing is missing, and the turns end by themselves.
    let resumed = ChatStream::resume(
        &staying,
        "resumed",
        stream.turn(),
        stream.last(),
        CursorPlacement::Header,
        None,
    )
    .await;
    resumed
        .expect("a stream")
        .until("completed")
        .await
        .expect("the end");
    for turn in [turn, stream.turn()] {
        let ended = staying.ended(turn).await.expect("ended");
        assert_eq!(ended["state"], json!(TurnState::Completed));
    }
    let refused = ChatStream::resume(
        &leaving,
        "refused",
        stream.turn(),
        stream.last(),
        CursorPlacement::Header,
        None,
    )
    .await;
    assert_eq!(refused.expect_err("revoked").status(), 401);
}

#[tokio::test]
async fn expired_token_closes_its_connection_unless_it_is_renewed() {
    let fixture = TokenServer::start(ServerOptions::script(slow_script())).await;
    let lifetime = Some(Duration::from_secs(4));
    let (short, _) = fixture.token_until("ann", &[Scope::Own], lifetime).await;
    let (long, _) = fixture.token("ann", &[Scope::Own]).await;
    let (bobs, _) = fixture.token("bob", &[Scope::Own]).await;
    let (probe, _) = fixture.token("ann", &[Scope::Metrics]).await;
    let api = with_token(&fixture.server, &short);
    let (mut renewed, _) = watching(&api, "renewed").await;
    let (mut expired, _) = watching(&api, "expired").await;
    for (token, code) in [
        (json!("twt_x"), "unauthorized"),
        (json!(bobs), "other_principal"),
        (json!(probe), "unauthorized"),
        (json!(7), "invalid_frame"),
    ] {
        let frame = json!({"type": "renew", "token": token});
        renewed.send(&frame).await.expect("sent");
        let answer = next_frame(&mut renewed).await;
        assert_eq!(
            (&answer["type"], &answer["code"]),
            (&json!("renew_error"), &json!(code))
        );
    }
    let frame = json!({"type": "renew", "token": long});
    renewed.send(&frame).await.expect("sent");
    assert_eq!(
        next_frame(&mut renewed).await,
        json!({"type": "renew_ack", "expires_at": null})
    );

    let end = expired.end().await;
    assert_eq!(closed(&end), (1008, "identity_expired".into()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    renewed
        .send(&json!({"type": "ping", "nonce": "1"}))
        .await
        .expect("still open");
    assert_eq!(next_frame(&mut renewed).await["type"], "pong");
    fixture.until_status(&short, |status| status == 401).await;
}

#[tokio::test]
async fn attach_token_ends_with_the_identity_that_asked_for_it() {
    let fixture = TokenServer::start(ServerOptions::default()).await;
    let (token, id) = fixture.token("ann", &[Scope::Own]).await;
    let api = with_token(&fixture.server, &token);
    let session = api.create().await.expect("a session");
    let attached = api.attach(session).await.expect("a token");
    fixture.file.revoke(&id).expect("revoked");
    fixture.until_status(&token, |status| status == 401).await;
    let url = attached["ws_url"].as_str().expect("an address");
    let opened = WatchClient::open(&fixture.server.api(), "late", session, url, None).await;
    let end = match opened {
        Err(refused) => panic!("refused: {refused}"),
        Ok(mut client) => client.end().await,
    };
    assert_eq!(closed(&end), (1008, "identity_revoked".into()));
}

// D-71
#[tokio::test]
async fn renewal_that_waits_for_keys_does_not_keep_an_expired_connection_open() {
    let fixture = JwtServer::start(ServerOptions::default()).await;
    // A look at the start, and one in ten seconds.
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    let short = with_claim(claims(ACME, "ann"), "exp", seconds_from_now(3));
    let api = with_token(&fixture.server, &fixture.key.sign(&short));
    let (mut client, _) = watching(&api, "short").await;
    fixture.issuer.serve_page(SitePage::Silent);
    let unknown = SigningKey::es256("unknown").sign(&claims(ACME, "ann"));
    client
        .send(&json!({"type": "renew", "token": unknown}))
        .await
        .expect("sent");
    let answer = next_frame(&mut client).await;
    assert_eq!(
        (&answer["type"], &answer["code"]),
        (&json!("renew_error"), &json!("unavailable"))
    );
    assert_eq!(
        closed(&client.end().await),
        (1008, "identity_expired".into())
    );
}

#[tokio::test]
async fn service_renews_the_connection_that_it_opened_for_another() {
    let fixture = TokenServer::start(ServerOptions::script(slow_script())).await;
    let act_as = &[Scope::Own, Scope::ActAs];
    let lifetime = Some(Duration::from_secs(4));
    let (short, _) = fixture.token_until("cron", act_as, lifetime).await;
    let (long, long_id) = fixture.token("cron", act_as).await;
    let (demoted, _) = fixture.token("cron", &[Scope::Own]).await;
    let (bots, _) = fixture.token("bot", act_as).await;
    let (anns, _) = fixture.token("ann", &[Scope::Own]).await;
    let (anns_service, _) = fixture.token("ann", act_as).await;
    let cron = with_token(&fixture.server, &short);
    let for_ann = cron.clone().with("x-turnwire-principal", "ann");
    let (mut client, session) = watching(&for_ann, "service").await;
    let (mut own, _) = watching(&cron, "own").await;
    let renew = async |client: &mut WatchClient, token: &str| {
        let frame = json!({"type": "renew", "token": token});
        client.send(&frame).await.expect("sent");
        next_frame(client).await
    };
    for (token, code) in [
        (&bots, "other_principal"),
        (&anns, "other_principal"),
        (&anns_service, "other_principal"),
        (&demoted, "unauthorized"),
    ] {
        let answer = renew(&mut client, token).await;
        assert_eq!(answer["code"], *code, "{answer}");
    }
    let ack = json!({"type": "renew_ack", "expires_at": null});
    assert_eq!(renew(&mut client, &long).await, ack);
    // The service's own connection needs no right to act for others.
    assert_eq!(renew(&mut own, &demoted).await, ack);
    // Ann's own connection is not taken over by a service.
    let ann = with_token(&fixture.server, &anns);
    let mut anns_client = WatchClient::connect(&ann, "ann", session).await;
    let anns_client = anns_client.as_mut().expect("connected");
    let live = SubscribeOptions::live();
    anns_client.subscribed(&live).await.expect("subscribed");
    let answer = renew(anns_client, &long).await;
    assert_eq!(answer["code"], "other_principal");

    fixture.until_status(&short, |status| status == 401).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ping = json!({"type": "ping", "nonce": "1"});
    client.send(&ping).await.expect("still open");
    assert_eq!(next_frame(&mut client).await["type"], "pong");
    // It is the service's connection: it ends with the service's token, and ann's stays.
    fixture.file.revoke(&long_id).expect("revoked");
    let end = client.end().await;
    assert_eq!(closed(&end), (1008, "identity_revoked".into()));
    anns_client.send(&ping).await.expect("still open");
    assert_eq!(next_frame(anns_client).await["type"], "pong");
}
