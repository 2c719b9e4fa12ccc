//! Emissions of statuses, counted by day.

use std::sync::Arc;

use turnwire_event::Timestamp;
use turnwire_event::row::RowChange;

use crate::records::StatusCount;
use crate::store::Store;
use crate::tests::fixture::BatchBuilder;

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    statuses_are_counted_by_day(create().as_ref());
}

fn statuses_are_counted_by_day(store: &dyn Store) {
    const DAY: i64 = 24 * 3600 * 1000;
    let mut a = BatchBuilder::new(1);
    let emitted = [
        (0, "searching", 1),
        (0, "searching", 2),
        (0, "thinking", 1),
        (40, "searching", 3),
        (41, "searching", 1),
    ];
    for (day, event_id, times) in emitted {
        let mut append = a.events(1);
        for _ in 0..times {
            let mut row = a.placed(RowChange::StatusCounted(event_id.into()));
            row.time = Timestamp::from_millis(day * DAY + DAY - 1);
            append.rows.push(row);
        }
        store.append(&[append]).expect("an append");
    }
    let status_count = |event_id: &str, total, days: &[(&str, u64)]| StatusCount {
        event_id: event_id.into(),
        total,
        days: days.iter().map(|&(day, n)| (day.into(), n)).collect(),
    };
    let recent = store.status_counts(Timestamp::from_millis(41 * DAY));
    let expected = [
        status_count("searching", 7, &[("1970-02-11", 1)]),
        status_count("thinking", 1, &[]),
    ];
    assert_eq!(recent.expect("counts"), expected);
    let all = store
        .status_counts(Timestamp::from_millis(0))
        .expect("counts");
    let days = [("1970-01-01", 3), ("1970-02-10", 3), ("1970-02-11", 1)];
    assert_eq!(all[0], status_count("searching", 7, &days));
    store.delete(&[a.session], &[]).expect("a delete");
    let after_delete = store
        .status_counts(Timestamp::from_millis(0))
        .expect("counts");
    assert_eq!(after_delete, all, "counts outlive the session");
}
