//! The audit and the jobs: one record for each act, pages in the order of time, expiry.

use std::sync::Arc;

use turnwire_event::code::{AuditAction, AuditOutcome};
use turnwire_event::row::{AuditEntry, AuditId, JobRow, Requester, RowChange};
use turnwire_event::{JobName, Owner, Principal, SessionId, TenantId, Timestamp, TurnId, Ulid};

use crate::records::PageBounds;
use crate::records::audit::AuditSelection;
use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, owner};

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    fired_job_is_known_with_its_last_outcome(create().as_ref());
    refused_append_records_nothing(create().as_ref());
    pause_and_resume_are_recorded_once(create().as_ref());
    jobs_are_pages_by_name_within_their_tenant(create().as_ref());
    audit_is_pages_by_time_within_its_tenant(create().as_ref());
    bounded_read_goes_on_where_it_stopped(create().as_ref());
    deletion_is_recorded_once(create().as_ref());
    old_records_and_unused_jobs_expire(create().as_ref());
}

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn job(name: &str) -> JobName {
    name.parse().expect("a job name")
}

fn principal(name: &str) -> Principal {
    name.parse().expect("a principal")
}

fn of_tenant(tenant: u128, name: &str) -> Requester {
    (&Owner {
        tenant: TenantId(tenant),
        principal: principal(name),
    })
        .into()
}

fn entry(ms: i64, action: AuditAction, by: &Requester) -> AuditEntry {
    AuditEntry::new(time(ms), action, by)
}

fn fired(ms: i64, name: &str, by: &Requester, outcome: AuditOutcome) -> AuditEntry {
    AuditEntry {
        job: Some(job(name)),
        outcome: Some(outcome),
        turn_id: (outcome == AuditOutcome::Dispatched).then_some(TurnId(Ulid(1))),
        ..entry(ms, AuditAction::JobFired, by)
    }
}

fn all(store: &dyn Store, tenant: u128) -> Vec<AuditEntry> {
    let selection = AuditSelection::of(TenantId(tenant), 1_000);
    let page = store.audit(&selection, None, 1_000.into()).expect("a page");
    assert_eq!(page.next, None);
    page.rows.into_iter().map(|row| row.entry).collect()
}

fn fired_job_is_known_with_its_last_outcome(store: &dyn Store) {
    let mut builder = BatchBuilder::new(1);
    let cron = Requester {
        owner: owner("ann"),
        service: Some(principal("cron")),
    };
    let dispatched = fired(10, "daily", &cron, AuditOutcome::Dispatched);
    let change = RowChange::AuditAdded(Box::new(dispatched.clone()));
    store
        .append(&[builder.event_with(change)])
        .expect("an append");
    let row = |fired_at, outcome| JobRow {
        name: job("daily"),
        created_at: time(10),
        created_by: principal("cron"),
        paused: None,
        fired_at: time(fired_at),
        outcome,
    };
    let found = || store.job(TenantId(0), &job("daily")).expect("a read");
    assert_eq!(found(), Some(row(10, AuditOutcome::Dispatched)));
    let skipped = AuditEntry {
        request: Some([7; 32]),
        ..fired(20, "daily", &cron, AuditOutcome::SkippedPaused)
    };
    assert_eq!(store.skipped_request(&[7; 32]).ok(), Some(None));
    store.add_audit(&skipped).expect("a record");
    assert_eq!(found(), Some(row(20, AuditOutcome::SkippedPaused)));
    assert_eq!(store.skipped_request(&[7; 32]).ok(), Some(Some(time(20))));
    assert_eq!(all(store, 0), [skipped, dispatched]);
    assert_eq!(
        store.job_count(TenantId(0), &principal("cron")).ok(),
        Some(1)
    );
    assert_eq!(
        store.job_count(TenantId(0), &principal("ann")).ok(),
        Some(0)
    );
}

fn refused_append_records_nothing(store: &dyn Store) {
    let mut builder = BatchBuilder::new(1);
    store.append(&[builder.events(1)]).expect("an append");
    let dispatched = fired(
        10,
        "daily",
        &(&owner("ann")).into(),
        AuditOutcome::Dispatched,
    );
    let mut append = builder.event_with(RowChange::AuditAdded(Box::new(dispatched)));
    append.prev = turnwire_event::Seq(7);
    store.append(&[append]).expect_err("a gap");
    assert_eq!(all(store, 0), []);
    assert_eq!(store.job(TenantId(0), &job("daily")).ok(), Some(None));
}

fn pause_and_resume_are_recorded_once(store: &dyn Store) {
    let ops = of_tenant(0, "ops");
    let change = |ms, action, name| AuditEntry {
        job: Some(job(name)),
        ..entry(ms, action, &ops)
    };
    let pause = |ms, name| change(ms, AuditAction::JobPaused, name);
    let resume = |ms, name| change(ms, AuditAction::JobResumed, name);
    let dispatched = fired(1, "daily", &ops, AuditOutcome::Dispatched);
    store.add_audit(&dispatched).expect("a record");
    let paused_by = |entry: &AuditEntry| {
        let job = store.set_job_paused(entry).expect("a write");
        job.map(|job| job.paused)
    };
    assert_eq!(paused_by(&pause(2, "unknown")), None);
    let foreign = AuditEntry {
        tenant: TenantId(9),
        ..pause(2, "daily")
    };
    assert_eq!(paused_by(&foreign), None);
    assert_eq!(paused_by(&resume(2, "daily")), Some(None), "not paused");
    let since = Some(Some((time(3), principal("ops"))));
    assert_eq!(paused_by(&pause(3, "daily")), since);
    assert_eq!(paused_by(&pause(4, "daily")), since, "paused already");
    assert_eq!(paused_by(&resume(5, "daily")), Some(None));
    let recorded = [resume(5, "daily"), pause(3, "daily"), dispatched];
    assert_eq!(all(store, 0), recorded);
    assert_eq!(all(store, 9), []);
}

fn jobs_are_pages_by_name_within_their_tenant(store: &dyn Store) {
    for (tenant, name) in [(0, "c"), (0, "a"), (1, "d"), (0, "b")] {
        let by = of_tenant(tenant, "ops");
        let dispatched = fired(1, name, &by, AuditOutcome::Dispatched);
        store.add_audit(&dispatched).expect("a record");
    }
    let names = |tenant, after: Option<&str>, rows: usize| {
        let after = after.map(job);
        let page = store.jobs(TenantId(tenant), after.as_ref(), rows.into());
        let page = page.expect("a page");
        let names = page.rows.iter().map(|row| row.name.to_string());
        (names.collect::<Vec<_>>().join(" "), page.has_more)
    };
    assert_eq!(names(0, None, 2), ("a b".into(), true));
    assert_eq!(names(0, Some("b"), 2), ("c".into(), false));
    assert_eq!(names(1, None, 9), ("d".into(), false));
    assert_eq!(names(2, None, 9), (String::new(), false));
}

fn audit_is_pages_by_time_within_its_tenant(store: &dyn Store) {
    let ann = of_tenant(0, "ann");
    let service = Requester {
        service: Some(principal("cron")),
        ..ann.clone()
    };
    let session = SessionId(Ulid(4));
    let about = |ms, by: &Requester| AuditEntry {
        session_id: Some(session),
        ..entry(ms, AuditAction::ApprovalDecided, by)
    };
    // The clock of a server may go back: the order is that of the times.
    let written = [
        about(30, &ann),
        fired(10, "daily", &service, AuditOutcome::Dispatched),
        entry(20, AuditAction::JobResumed, &of_tenant(0, "ops")),
        entry(20, AuditAction::JobPaused, &of_tenant(1, "ops")),
        fired(20, "weekly", &ann, AuditOutcome::Dispatched),
    ];
    for entry in &written {
        store.add_audit(entry).expect("a record");
    }
    let ids = |selection: &AuditSelection, before: Option<i64>, rows: usize| {
        let page = store.audit(selection, before.map(AuditId), rows.into());
        let page = page.expect("a page");
        let ids: Vec<i64> = page.rows.iter().map(|row| row.id.0).collect();
        (ids, page.next.map(|id| id.0))
    };
    let of_all = AuditSelection::of(TenantId(0), 100);
    assert_eq!(ids(&of_all, None, 9), (vec![1, 5, 3, 2], None));
    assert_eq!(ids(&of_all, None, 2), (vec![1, 5], Some(5)));
    assert_eq!(ids(&of_all, Some(5), 2), (vec![3, 2], None));
    assert_eq!(
        ids(&of_all, Some(4), 9),
        (vec![], None),
        "of another tenant"
    );
    assert_eq!(ids(&of_all, Some(99), 9), (vec![], None), "unknown");
    let in_bytes = PageBounds { rows: 9, bytes: 1 };
    let page = store.audit(&of_all, None, in_bytes).expect("a page");
    assert_eq!((page.rows.len(), page.next), (1, Some(AuditId(1))));
    let selected = |change: fn(&mut AuditSelection)| {
        let mut selection = of_all.clone();
        change(&mut selection);
        ids(&selection, None, 9).0
    };
    assert_eq!(selected(|s| s.from = Some(time(20))), [1, 5, 3]);
    assert_eq!(selected(|s| s.to = Some(time(20))), [5, 3, 2]);
    assert_eq!(selected(|s| s.action = Some(AuditAction::JobFired)), [5, 2]);
    assert_eq!(selected(|s| s.job = Some(job("daily"))), [2]);
    assert_eq!(selected(|s| s.session = Some(SessionId(Ulid(4)))), [1]);
    assert_eq!(
        selected(|s| s.principal = Some(principal("ann"))),
        [1, 5, 2]
    );
    assert_eq!(selected(|s| s.principal = Some(principal("cron"))), [2]);
}

fn bounded_read_goes_on_where_it_stopped(store: &dyn Store) {
    let ops = of_tenant(0, "ops");
    for ms in 1..=7 {
        let name = if ms == 2 { "rare" } else { "daily" };
        let dispatched = fired(ms, name, &ops, AuditOutcome::Dispatched);
        store.add_audit(&dispatched).expect("a record");
    }
    let selection = AuditSelection {
        job: Some(job("rare")),
        ..AuditSelection::of(TenantId(0), 3)
    };
    let (mut before, mut pages) = (None, Vec::new());
    loop {
        let page = store.audit(&selection, before, 9.into()).expect("a page");
        let ids: Vec<i64> = page.rows.iter().map(|row| row.id.0).collect();
        pages.push(ids);
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(pages, [vec![], vec![2], vec![]]);
}

fn deletion_is_recorded_once(store: &dyn Store) {
    let mut builder = BatchBuilder::new(1);
    let deleted = |ms, by: &str| AuditEntry {
        session_id: Some(builder.session),
        ..entry(ms, AuditAction::SessionDeleted, &of_tenant(0, by))
    };
    let (announced, again) = (deleted(1, "ann"), deleted(2, "ann"));
    let session = builder.session;
    let change = RowChange::AuditAdded(Box::new(announced.clone()));
    store
        .append(&[builder.event_with(change)])
        .expect("an append");
    store.delete(&[session], &[again]).expect("a delete");
    assert_eq!(all(store, 0), [announced]);
    let other = BatchBuilder::new(2).events(1);
    let deleted = AuditEntry {
        session_id: Some(other.session),
        ..entry(3, AuditAction::SessionDeleted, &of_tenant(1, "bob"))
    };
    let session = other.session;
    store.append(&[other]).expect("an append");
    store
        .delete(&[session], std::slice::from_ref(&deleted))
        .expect("a delete");
    assert_eq!(all(store, 1), [deleted]);
}

fn old_records_and_unused_jobs_expire(store: &dyn Store) {
    let ops = of_tenant(0, "ops");
    for (ms, name) in [(1, "old"), (2, "paused"), (3, "old"), (8, "new")] {
        let dispatched = fired(ms, name, &ops, AuditOutcome::Dispatched);
        store.add_audit(&dispatched).expect("a record");
    }
    let pause = AuditEntry {
        job: Some(job("paused")),
        ..entry(9, AuditAction::JobPaused, &ops)
    };
    store.set_job_paused(&pause).expect("a pause");
    assert_eq!(store.expire_audit(time(1), 2).ok(), Some(false));
    assert_eq!(all(store, 0).len(), 5);
    assert_eq!(
        store.expire_audit(time(8), 2).ok(),
        Some(true),
        "more may be left"
    );
    assert_eq!(store.expire_audit(time(8), 2).ok(), Some(false));
    let left: Vec<i64> = all(store, 0)
        .iter()
        .map(|entry| entry.at.as_millis())
        .collect();
    assert_eq!(left, [9, 8]);
    let jobs = store
        .jobs(TenantId(0), None, 9.into())
        .expect("a page")
        .rows;
    let names: Vec<String> = jobs.iter().map(|row| row.name.to_string()).collect();
    assert_eq!(names, ["new", "paused"]);
}
