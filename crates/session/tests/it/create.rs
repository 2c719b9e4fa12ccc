//! A session created with its first turn: one commit, and one instance in memory.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use turnwire_session::{NewSession, Options, SessionService, SubmitTarget};

use crate::stage::*;

/// Opens each session as soon as the store has it. Returns those that had no turn.
async fn open_all(sessions: SessionService, over: Arc<AtomicBool>) -> (usize, usize) {
    let me = owner("local");
    let mut seen = HashSet::new();
    let mut bare = 0;
    while !over.load(Ordering::Acquire) {
        for row in sessions
            .reader()
            .sessions(&me, None, 1000)
            .await
            .expect("a list")
            .0
        {
            if seen.insert(row.id) {
                bare += usize::from(row.turn_count == 0);
                sessions
                    .live_sessions()
                    .open(&me, row.id)
                    .await
                    .expect("a session");
            }
        }
        tokio::task::yield_now().await;
    }
    (seen.len(), bare)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn new_session_and_first_turn_appear_together() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let over = Arc::new(AtomicBool::new(false));
    let listers: Vec<_> = (0..3)
        .map(|_| tokio::spawn(open_all(sessions.clone(), over.clone())))
        .collect();
    let mut made = Vec::new();
    for _ in 0..25 {
        let crowd: Vec<_> = (0..8)
            .map(|_| {
                let sessions = sessions.clone();
                tokio::spawn(async move {
                    let place = SubmitTarget::New(NewSession::default());
                    sessions
                        .submitter()
                        .submit(&owner("local"), place, text_request("1"), None)
                        .await
                })
            })
            .collect();
        for one in crowd {
            made.push(one.await.expect("a task").expect("accepted"));
        }
    }
    over.store(true, Ordering::Release);
    for lister in listers {
        let (seen, bare) = lister.await.expect("a lister");
        assert!(seen > 0, "it looked while sessions were made");
        assert_eq!(bare, 0, "no session without its turn");
    }
    for accepted in &made {
        let live = sessions
            .live_sessions()
            .open(&owner("local"), accepted.session_id)
            .await;
        let live = live.expect("not damaged");
        assert_eq!(live.current_turn(), Some(accepted.turn_id), "one session");
        enqueue(&sessions, accepted.session_id, "2").await;
    }
    gate.open(2 * made.len());
    for accepted in &made {
        let events = wait_for_terminals(&sessions, accepted.session_id, 2).await;
        assert_each_ends_once(&events);
        assert_eq!(started_inputs(&events), ["1", "2"]);
    }
}
