//! Ids that upstreams give to the responses of turns: one turn of an owner has an id.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Barrier;
use turnwire_session::Options;

use crate::stage::*;

// S1-034
#[tokio::test]
async fn one_of_two_turns_claims_an_id_until_it_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let claimed = Arc::new(Mutex::new(Vec::new()));
    let (claims, turns) = (Arc::clone(&claimed), Arc::new(AtomicUsize::new(0)));
    let two = Arc::new(Barrier::new(2));
    let act = producer_fn(move |turn| {
        let (claims, two) = (Arc::clone(&claims), Arc::clone(&two));
        let is_third = turns.fetch_add(1, Ordering::Relaxed) == 2;
        async move {
            let id = "resp_abc".parse().expect("an id");
            let is_claimed = turn.emitter.claim_response_id(&id).await;
            claims.lock().push(is_claimed);
            // Nothing of it is stored, and none of the two ends before both have asked.
            if !is_third {
                two.wait().await;
            }
            OK
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = new_session(&sessions).await;
        let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
        accepted.expect("accepted");
        ids.push(id);
    }
    for id in ids {
        wait_for_end(&sessions, id).await;
    }
    let mut both = claimed.lock().clone();
    both.sort();
    assert_eq!(both, [false, true]);
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    wait_for_end(&sessions, id).await;
    assert_eq!(claimed.lock()[2..], [true]);
}
