//! Writes that requests wait for, while the writer is behind: each owner has a share of its queue.

use std::sync::{Arc, mpsc};

use tokio::task::JoinHandle;
use turnwire_event::{Owner, SessionId};
use turnwire_log::LogWriter;
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{Error, NewSession, Options, SessionService, SystemIdGenerator};

use crate::stage::*;

async fn service_with_writer(
    dir: &std::path::Path,
    options: Options,
) -> (SessionService, Arc<LogWriter>) {
    let (_, act) = Turnstile::new();
    let parts = writer(dir, DiskReserve::new(dir.join("reserve"), 0));
    let log_writer = parts.1.clone();
    let producer = Arc::new(TestProducer(act, pass_through_gates()));
    let ids = Arc::new(SystemIdGenerator);
    (
        service_over(parts, options, ids, producer).await,
        log_writer,
    )
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

fn create(sessions: &SessionService, of: &Owner) -> JoinHandle<Result<SessionId, Error>> {
    let (writer, of) = (sessions.writer(), of.clone());
    tokio::spawn(async move {
        let row = writer.create(&of, NewSession::default()).await?;
        Ok(row.id)
    })
}

fn delete(sessions: &SessionService, of: &Owner, id: SessionId) -> JoinHandle<Result<(), Error>> {
    let (writer, of) = (sessions.writer(), of.clone());
    tokio::spawn(async move { writer.delete(&of, id).await })
}

/// Lets the other tasks of this thread run until they wait.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn full_queue_of_one_owner_refuses_no_other() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = Options {
        write_slots_per_owner: 2,
        writes_waiting_per_owner: 1,
        ..Options::default()
    };
    let (sessions, log_writer) = service_with_writer(dir.path(), options).await;
    let (greedy, quiet) = (owner("greedy"), owner("quiet"));
    let go_on = stop_writer(&log_writer);
    // Clients that go away keep their slots until their writes are durable.
    let gone = [create(&sessions, &greedy), create(&sessions, &greedy)];
    settle().await;
    gone.iter().for_each(JoinHandle::abort);
    let waiting = create(&sessions, &greedy);
    settle().await;
    let refused = create(&sessions, &greedy).await.expect("a task");
    assert_eq!(refused, Err(Error::TooManyWrites));
    let other = create(&sessions, &quiet);
    settle().await;
    assert!(!waiting.is_finished() && !other.is_finished());
    drop(go_on);
    other.await.expect("a task").expect("a session");
    waiting.await.expect("a task").expect("a session");
}

#[tokio::test]
async fn deletions_that_wait_are_all_answered() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, log_writer) = service_with_writer(dir.path(), Options::default()).await;
    let of = owner("local");
    let mut ids = Vec::new();
    for _ in 0..80 {
        ids.push(new_session(&sessions).await);
    }
    let given_up = ids.split_off(79)[0];
    let go_on = stop_writer(&log_writer);
    let abandoned = delete(&sessions, &of, given_up);
    settle().await;
    let deletions: Vec<_> = ids.iter().map(|id| delete(&sessions, &of, *id)).collect();
    settle().await;
    assert!(deletions.iter().all(|deletion| !deletion.is_finished()));
    // A deletion that has not begun ends with its caller.
    abandoned.abort();
    let _ = abandoned.await;
    drop(go_on);
    for deletion in deletions {
        assert_eq!(deletion.await.expect("a task"), Ok(()));
    }
    let listed = sessions.reader().sessions(&of, None, 200).await;
    let (rows, _) = listed.expect("a list");
    let left: Vec<SessionId> = rows.iter().map(|row| row.id).collect();
    assert_eq!(left, [given_up]);
}
