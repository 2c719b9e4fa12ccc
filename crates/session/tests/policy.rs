//! A routing policy that is replaced while the server runs.

mod stage;

use turnwire_event::{Actor, Body, Event};
use turnwire_session::{NewSession, Options};

use stage::*;

#[tokio::test]
async fn s3_104_a_new_policy_is_told_where_someone_would_see_it_and_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let service = sessions(dir.path(), Options::default(), act.clone()).await;
    let me = owner("local");
    let [running, watched, idle] = [
        new_session(&service).await,
        new_session(&service).await,
        new_session(&service).await,
    ];
    submit(&service, &me, running, say("hi"))
        .await
        .expect("accepted");
    let live = service.live(&me, watched).await.expect("a session");
    let watcher = live.watch();
    assert_eq!(service.policy_reloaded("2026-11-16"), 2);
    assert_eq!(service.policy_reloaded("2026-11-16"), 0, "it is no change");
    let told = |events: &[Event]| -> Vec<(Option<String>, String)> {
        let reloads = events.iter().filter_map(|event| match &event.body {
            Body::RoutingPolicyReloaded(body) => {
                assert_eq!((event.turn_id, &event.actor), (None, &Actor::SYSTEM));
                Some((
                    body.previous_version.clone(),
                    body.routing_policy_version.clone(),
                ))
            }
            _ => None,
        });
        reloads.collect()
    };
    let version = |row: turnwire_event::row::SessionRow| row.routing_policy_version;
    for id in [running, watched] {
        let live = service.live(&me, id).await.expect("a session");
        let last = live.sequencer.last().seq;
        live.sequencer.committed(last).await.expect("committed");
        let expected = [(Some("builtin-1".to_owned()), "2026-11-16".to_owned())];
        assert_eq!(told(&log(&service, id).await), expected);
        let snapshot = live.snapshot(1).await.expect("a snapshot");
        assert_eq!(version(snapshot.row), "2026-11-16");
    }
    assert_eq!(told(&log(&service, idle).await), []);
    drop(watcher);
    gate.open(1);
    ended(&service, running, 1).await;
    assert_eq!(service.policy_reloaded("2026-11-17"), 0, "nobody is there");
    let fresh = service.create(&me, NewSession::default()).await;
    assert_eq!(version(fresh.expect("a session")), "2026-11-17");
    let image = crashed(dir.path());
    let again = sessions(image.path(), Options::default(), act).await;
    let live = again.live(&me, watched).await.expect("a session");
    let snapshot = live.snapshot(1).await.expect("a snapshot");
    assert_eq!(version(snapshot.row), "2026-11-16", "it is stored");
}
