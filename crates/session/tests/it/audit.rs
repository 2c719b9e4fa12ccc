//! The audit: one record for each request of a scheduler, deletion and decision, in the commit of what
//! it records; and jobs, which are paused and resumed.

use std::collections::HashSet;

use turnwire_event::code::{AuditAction, AuditOutcome, OnBusy, Origin, TurnKind};
use turnwire_event::row::{AuditEntry, JobRow, Requester};
use turnwire_event::{JobName, Owner, Principal, SessionId, TenantId, TurnId};
use turnwire_fair::FairRefusal;
use turnwire_session::{
    Error, IdempotencyKey, JobSwitch, NewSession, Options, SessionService, SharedResource,
    SubmitRequest, SubmitTarget, SubmittedTurn, Viewer, WatchGuard,
};

use crate::stage::*;

fn principal(name: &str) -> Principal {
    name.parse().expect("a principal")
}

fn job(name: &str) -> JobName {
    name.parse().expect("a job name")
}

/// The service `cron`, which acts for `local`.
fn cron() -> Requester {
    Requester {
        owner: owner("local"),
        service: Some(principal("cron")),
    }
}

fn scheduled(text: &str) -> SubmitRequest {
    SubmitRequest {
        origin: Origin::Scheduled,
        on_busy: OnBusy::Enqueue,
        ..text_request(text)
    }
}

fn key(name: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        route: "turns",
        key: name.to_owned(),
        body_sha256: [1; 32],
    })
}

async fn fire(
    sessions: &SessionService,
    by: &Requester,
    id: SessionId,
    (name, key_name): (Option<&str>, Option<&str>),
) -> Result<SubmittedTurn, Error> {
    let named = (name.map(job), key_name.and_then(key));
    let target = SubmitTarget::Existing(id);
    let submitter = sessions.submitter();
    let submit = submitter.submit_scheduled(by, target, scheduled("go"), named);
    submit.await
}

fn dispatched(submit: Result<SubmittedTurn, Error>) -> SubmittedTurn {
    submit.expect("a turn")
}

async fn switch(sessions: &SessionService, name: &str, switch: JobSwitch) -> Result<JobRow, Error> {
    let ops = (&owner("ops")).into();
    sessions.jobs().switch(&ops, job(name), switch).await
}

/// All records of the tenant, the oldest first.
async fn records(sessions: &SessionService) -> Vec<AuditEntry> {
    let audit = sessions.audit();
    let selection = audit.selection(TenantId(0));
    let page = audit
        .page(&owner("ops"), selection, None, 1_000.into())
        .await
        .expect("a page");
    assert_eq!(page.next, None);
    page.rows.into_iter().rev().map(|row| row.entry).collect()
}

/// The outcomes of all requests of schedulers, each with its turn.
async fn fires(sessions: &SessionService) -> Vec<(Option<AuditOutcome>, Option<TurnId>)> {
    let records = records(sessions).await.into_iter();
    let fires = records.filter(|entry| entry.action == AuditAction::JobFired);
    fires.map(|entry| (entry.outcome, entry.turn_id)).collect()
}

const DISPATCHED: Option<AuditOutcome> = Some(AuditOutcome::Dispatched);
const SKIPPED: Option<AuditOutcome> = Some(AuditOutcome::SkippedPaused);

// R-32, S2-046
#[tokio::test]
async fn each_scheduled_turn_leaves_one_record() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let named = (Some("daily"), Some("monday"));
    let first = dispatched(fire(&sessions, &cron(), id, named).await);
    let again = dispatched(fire(&sessions, &cron(), id, named).await);
    assert_eq!((again.turn_id, again.repeated), (first.turn_id, true));
    let queued = dispatched(fire(&sessions, &cron(), id, (None, None)).await);
    let own: Requester = (&owner("local")).into();
    let last = dispatched(fire(&sessions, &own, id, (Some("weekly"), None)).await);
    let found = records(&sessions).await;
    let expected =
        |at: usize, turn: &SubmittedTurn, name: Option<&str>, by: &Requester| AuditEntry {
            session_id: Some(id),
            turn_id: Some(turn.turn_id),
            job: name.map(job),
            outcome: DISPATCHED,
            request: found[at].request,
            ..AuditEntry::new(found[at].at, AuditAction::JobFired, by)
        };
    let all = [
        expected(0, &first, Some("daily"), &cron()),
        expected(1, &queued, None, &cron()),
        expected(2, &last, Some("weekly"), &own),
    ];
    assert_eq!(found, all);
    assert_eq!(found[0].actor, principal("cron"));
    assert_eq!(found[0].acted_for, Some(principal("local")));
    let row = sessions.reader().turn(&owner("local"), first.turn_id).await;
    assert_eq!(row.expect("a turn").kind, TurnKind::Scheduled);
    gate.open(3);
    wait_for_terminals(&sessions, id, 3).await;
    assert_eq!(records(&sessions).await, all);
    // A person's turn is not recorded.
    let chat = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    chat.expect("accepted");
    assert_eq!(records(&sessions).await.len(), 3);
}

//
#[tokio::test]
async fn paused_job_starts_no_turn_also_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let unknown = switch(&sessions, "daily", JobSwitch::Pause).await;
    assert_eq!(unknown, Err(Error::JobNotFound));
    gate.open(1);
    let first = dispatched(fire(&sessions, &cron(), id, (Some("daily"), None)).await);
    let paused = switch(&sessions, "daily", JobSwitch::Pause).await;
    let (_, by) = paused.expect("a job").paused.expect("paused");
    assert_eq!(by, principal("ops"));
    wait_for_terminals(&sessions, id, 1).await;

    let image = copy_store(dir.path());
    let (gate, act) = Turnstile::new();
    let sessions = start_service(image.path(), Options::default(), act).await;
    let skipped = Err(Error::JobPaused(job("daily")));
    let named = (Some("daily"), Some("monday"));
    assert_eq!(fire(&sessions, &cron(), id, named).await, skipped);
    assert_eq!(fire(&sessions, &cron(), id, named).await, skipped);
    assert_eq!(
        fire(&sessions, &cron(), id, (Some("daily"), Some("tuesday"))).await,
        skipped
    );
    // A job of the same name in another tenant is another job.
    let elsewhere = Owner {
        tenant: TenantId(9),
        principal: principal("local"),
    };
    let submitter = sessions.submitter();
    let target = SubmitTarget::New(NewSession::default());
    let other = Requester::from(&elsewhere);
    let named_daily = (Some(job("daily")), None);
    let other = submitter.submit_scheduled(&other, target, scheduled("go"), named_daily);
    dispatched(other.await);
    let other = dispatched(fire(&sessions, &cron(), id, (Some("weekly"), None)).await);
    let once = (SKIPPED, None);
    let expected = [
        (DISPATCHED, Some(first.turn_id)),
        once,
        once,
        (DISPATCHED, Some(other.turn_id)),
    ];
    assert_eq!(fires(&sessions).await, expected);
    let (listed, _) = sessions
        .jobs()
        .list(&owner("ops"), TenantId(0), None, 9.into())
        .await
        .expect("jobs");
    let listed: Vec<_> = listed
        .iter()
        .map(|job| (job.name.as_str(), job.paused.is_some(), Some(job.outcome)))
        .collect();
    assert_eq!(
        listed,
        [("daily", true, SKIPPED), ("weekly", false, DISPATCHED)]
    );

    let resumed = switch(&sessions, "daily", JobSwitch::Resume).await;
    assert_eq!(resumed.expect("a job").paused, None);
    // The request that was skipped stays skipped; the next one runs.
    assert_eq!(fire(&sessions, &cron(), id, named).await, skipped);
    dispatched(fire(&sessions, &cron(), id, (Some("daily"), Some("friday"))).await);
    gate.open(9);
    let acts: Vec<_> = records(&sessions)
        .await
        .iter()
        .map(|entry| entry.action)
        .collect();
    let fired = AuditAction::JobFired;
    let expected = [
        fired,
        AuditAction::JobPaused,
        fired,
        fired,
        fired,
        AuditAction::JobResumed,
        fired,
    ];
    assert_eq!(acts, expected);
}

#[tokio::test]
async fn request_for_a_foreign_session_is_not_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    dispatched(fire(&sessions, &cron(), id, (Some("daily"), None)).await);
    let eve: Requester = (&owner("eve")).into();
    let foreign = async |name| fire(&sessions, &eve, id, (Some(name), None)).await;
    assert_eq!(foreign("daily").await, Err(Error::SessionNotFound));
    switch(&sessions, "daily", JobSwitch::Pause)
        .await
        .expect("a job");
    assert_eq!(foreign("daily").await, Err(Error::SessionNotFound));
    assert_eq!(foreign("other").await, Err(Error::SessionNotFound));
    assert_eq!(fires(&sessions).await.len(), 1);
}

// G9
#[tokio::test]
async fn one_service_makes_a_bounded_number_of_jobs_known() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_gate, act) = Turnstile::new();
    let options = Options {
        jobs_max: 2,
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    for name in ["a", "b", "a"] {
        dispatched(fire(&sessions, &cron(), id, (Some(name), None)).await);
    }
    let refused = fire(&sessions, &cron(), id, (Some("c"), None)).await;
    let expected = Error::LimitReached {
        resource: SharedResource::Jobs,
        refusal: FairRefusal::OwnerFull,
        max: 2,
    };
    assert_eq!(refused, Err(expected));
    let own: Requester = (&owner("local")).into();
    dispatched(fire(&sessions, &own, id, (Some("c"), None)).await);
    assert_eq!(fires(&sessions).await.len(), 4);
}

/// A crash at any moment leaves a turn with its record, or neither.
// R-32, I1
#[tokio::test(flavor = "multi_thread")]
async fn crash_leaves_a_turn_with_its_record_or_neither() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let options = Options {
        queue_max: 100,
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options.clone(), act).await;
    let id = new_session(&sessions).await;
    let submits = (0..24).map(|n| {
        let sessions = sessions.clone();
        tokio::spawn(async move {
            let name = n.to_string();
            dispatched(fire(&sessions, &cron(), id, (Some("daily"), Some(&name))).await);
        })
    });
    let submits: Vec<_> = submits.collect();
    let mut images = Vec::new();
    for _ in 0..8 {
        images.push(copy_store(dir.path()));
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    for submit in submits {
        submit.await.expect("accepted");
    }
    images.push(copy_store(dir.path()));
    gate.open(100);
    for (at, image) in images.iter().enumerate() {
        let (gate, act) = Turnstile::new();
        gate.open(100);
        let after = start_service(image.path(), options.clone(), act).await;
        // The same requests again: those that were accepted are not repeated.
        for n in 0..24 {
            let name = n.to_string();
            dispatched(fire(&after, &cron(), id, (Some("daily"), Some(&name))).await);
        }
        let recorded = fires(&after).await;
        let of_turns: HashSet<_> = recorded.iter().filter_map(|(_, turn)| *turn).collect();
        let (turns, _) = after
            .reader()
            .turns(&owner("local"), id, None, 100)
            .await
            .expect("turns");
        let turns: HashSet<TurnId> = turns.iter().map(|row| row.id).collect();
        assert_eq!((recorded.len(), turns.len()), (24, 24), "image {at}");
        assert_eq!(of_turns, turns, "image {at}");
    }
}

#[tokio::test]
async fn deletion_is_recorded_with_what_ends_the_session() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let (silent, watched) = (new_session(&sessions).await, new_session(&sessions).await);
    let eve = sessions.writer().delete(&owner("eve"), silent).await;
    assert_eq!(eve, Err(Error::SessionNotFound));
    sessions
        .writer()
        .delete(cron(), silent)
        .await
        .expect("deleted");
    let live = sessions
        .live_sessions()
        .open(&owner("local"), watched)
        .await;
    let live = live.expect("a session");
    let watch = WatchGuard::new(&live);
    let deleted = sessions.writer().delete(&owner("local"), watched).await;
    deleted.expect("deleted");
    drop(watch);
    let found = records(&sessions).await;
    let expected = |at: usize, id, by: &Requester| AuditEntry {
        session_id: Some(id),
        ..AuditEntry::new(found[at].at, AuditAction::SessionDeleted, by)
    };
    let local: Requester = (&owner("local")).into();
    assert_eq!(
        found,
        [expected(0, silent, &cron()), expected(1, watched, &local)]
    );
    let again = sessions.writer().delete(&owner("local"), silent).await;
    assert_eq!(again, Err(Error::SessionNotFound));
    assert_eq!(records(&sessions).await.len(), 2);
}

#[tokio::test]
async fn decision_is_recorded_with_the_name_of_the_reviewer() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, sessions) = approval_service(dir.path()).await;
    let (id, turn) = pause_turn(&sessions, text_request("1")).await;
    let approvals = approvals_of(&sessions, turn).await;
    let (rita, bot) = (owner("rita"), principal("bot"));
    let reviewer = Viewer {
        service: Some(&bot),
        ..Viewer::of_tenant(&rita)
    };
    for _ in 0..2 {
        let decisions = vec![approve(&approvals[0])];
        sessions
            .approvals()
            .decide(reviewer, turn, decisions, None)
            .await
            .expect("accepted");
    }
    let found = records(&sessions).await;
    let by = Requester {
        owner: rita.clone(),
        service: Some(bot.clone()),
    };
    let expected = AuditEntry {
        session_id: Some(id),
        turn_id: Some(turn),
        approval_id: Some(approvals[0].id),
        outcome: Some(AuditOutcome::Approved),
        ..AuditEntry::new(found[0].at, AuditAction::ApprovalDecided, &by)
    };
    assert_eq!(found, [expected]);
}
