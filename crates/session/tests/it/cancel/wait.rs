//! Waiting for the end of a turn while the writer is behind: for the turn's own events, and for no
//! others.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use turnwire_log::LogWriter;
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{Options, SessionService, SystemIdGenerator};

use crate::stage::*;

/// A service whose turns end when the test permits it, with its writer.
async fn service_with_writer(
    dir: &std::path::Path,
) -> (SessionService, Arc<Turnstile>, Arc<LogWriter>) {
    let (gate, act) = Turnstile::new();
    let parts = writer(dir, DiskReserve::new(dir.join("reserve"), 0));
    let log_writer = parts.1.clone();
    let producer = Arc::new(TestProducer(act, pass_through_gates()));
    let ids = Arc::new(SystemIdGenerator);
    let sessions = service_over(parts, Options::default(), ids, producer).await;
    (sessions, gate, log_writer)
}

/// Stops the writer until the sender is dropped.
fn stop_writer(log_writer: &LogWriter) -> mpsc::Sender<()> {
    let (go_on, stopped) = mpsc::channel();
    log_writer.run(Box::new(move || {
        let _ = stopped.recv();
        Ok(())
    }));
    go_on
}

async fn until(what: &str, check: impl AsyncFn() -> bool) {
    for _ in 0..4000 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

#[tokio::test]
async fn ended_turn_is_reported_while_a_later_one_cannot_be_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate, log_writer) = service_with_writer(dir.path()).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("one")).await;
    let turn = turn.expect("accepted").turn_id;
    gate.open(1);
    wait_for_end(&sessions, id).await;

    let go_on = stop_writer(&log_writer);
    let live = sessions
        .live_sessions()
        .open(&of, id)
        .await
        .expect("a session");
    let last = live.sequencer.last();
    let later = {
        let (sessions, of) = (sessions.clone(), of.clone());
        tokio::spawn(async move { submit(&sessions, &of, id, text_request("two")).await })
    };
    until("the later turn has events", async || {
        live.sequencer.last() > last
    })
    .await;
    let canceller = sessions.canceller();
    let waited = canceller.wait_for_end(&of, turn, LONG_LIMIT);
    let waited = tokio::time::timeout(Duration::from_secs(5), waited).await;
    let row = waited.expect("no wait for the later turn").expect("a turn");
    assert_eq!(row.expect("an end").id, turn);
    assert!(!later.is_finished(), "the writer is stopped");
    drop(go_on);
    later.await.expect("a task").expect("accepted");
    gate.open(1);
}

// A client that waits for the end of a turn, then reads the log, finds all events of the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn wait_ends_after_the_terminal_is_released() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate, log_writer) = service_with_writer(dir.path()).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("one")).await;
    let turn = turn.expect("accepted").turn_id;
    let live = sessions
        .live_sessions()
        .open(&of, id)
        .await
        .expect("a session");
    let go_on = stop_writer(&log_writer);
    gate.open(1);
    until("the turn has left its slot", async || {
        live.current_turn().is_none()
    })
    .await;
    // The writer commits the terminal, and waits for the ring to release it.
    let (unlock, locked) = mpsc::channel::<()>();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let lock = {
        let live = live.clone();
        std::thread::spawn(move || {
            live.ring.with_state(|_, _, _| {
                let _ = begun.send(());
                let _ = locked.recv();
            });
        })
    };
    has_begun.await.expect("the lock");
    drop(go_on);
    until("the row of the turn has its end", async || {
        let row = sessions.reader().turn(&of, turn).await;
        row.expect("a turn").ended.is_some()
    })
    .await;
    let waiting = {
        let (sessions, of) = (sessions.clone(), of.clone());
        tokio::spawn(async move {
            let canceller = sessions.canceller();
            canceller.wait_for_end(&of, turn, LONG_LIMIT).await
        })
    };
    // Long enough for a wait that does not wait to return.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "the terminal is not released");
    drop(unlock);
    let row = waiting.await.expect("a task").expect("a turn");
    assert!(row.expect("an end").ended.is_some());
    let events = read_log(&sessions, id).await;
    terminal_of(&events, turn);
    lock.join().expect("a thread");
}
