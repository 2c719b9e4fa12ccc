//! Background tasks of a writer over a real store.

use std::sync::atomic::AtomicU32;

use super::*;
use crate::sqlite::{CommitDurability, SqliteOptions, SqliteStore};

fn start(dir: &std::path::Path) -> Arc<LogWriter> {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let store = Arc::new(SqliteStore::open(&options).expect("a store"));
    let reserve = DiskReserve::new(dir.join("reserve"), 0);
    LogWriter::start(store, reserve, Box::new(|_| {})).expect("a writer")
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn waiting_task_rests_while_others_go_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let writer = start(dir.path());
    let (polls, pieces) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let is_ready = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let (counted, ready) = (polls.clone(), is_ready.clone());
    let waiting: BackgroundTask = Box::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(match ready.load(Ordering::SeqCst) {
            true => Progress::Done,
            false => Progress::Later,
        })
    });
    assert!(writer.run_background("waiting", waiting));
    let counted = pieces.clone();
    let working: BackgroundTask = Box::new(move || {
        Ok(match counted.fetch_add(1, Ordering::SeqCst) {
            99.. => Progress::Done,
            _ => Progress::More,
        })
    });
    assert!(writer.run_background("working", working));
    wait_until(|| pieces.load(Ordering::SeqCst) == 100);
    let polls_so_far = polls.load(Ordering::SeqCst);
    let polls_max = started.elapsed().as_millis() / LATER_INTERVAL.as_millis() + 1;
    assert!(
        (1..=polls_max).contains(&polls_so_far.into()),
        "{polls_so_far} polls, at most {polls_max}"
    );
    // The task is polled until it is done.
    is_ready.store(true, Ordering::SeqCst);
    let done: fn() -> BackgroundTask = || Box::new(|| Ok(Progress::Done));
    wait_until(|| writer.run_background("waiting", done()));
    writer.stop();
}
