//! Model calls and what they come to by day; what a provider wants back with a message.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::code::{CallPurpose, CallState, LlmErrorClass};
use turnwire_event::row::{
    CallEnd, FinishedMessage, LlmCallRow, RowChange, Scope, SessionRow, StoredMessage,
};
use turnwire_event::{
    Actor, CallId, ContentBlock, Day, Kept, MessageId, MessageStatus, Role, SessionId, StopReason,
    TenantId, Timestamp, TurnId, Ulid, Usage,
};

use super::scope::{at, message, said};
use super::{Maker, session_row};
use crate::record::Append;
use crate::store::{Store, UsageDay, View};

pub(super) fn run(make: &dyn Fn() -> Arc<dyn Store>) {
    a_call_is_told_from_its_start_to_its_end(make().as_ref());
    a_call_that_is_tried_again_under_its_id_tells_the_newest_try(make().as_ref());
    calls_come_page_by_page_and_go_with_their_session(make().as_ref());
    usage_is_summed_by_day_tenant_and_model(make().as_ref());
    a_call_counts_once(make().as_ref());
    numbers_that_cannot_be_do_not_stop_the_log(make().as_ref());
    a_policy_is_replaced_without_a_turn(make().as_ref());
    a_turn_that_began_before_a_reload_does_not_bring_its_policy_back(make().as_ref());
    what_a_provider_wants_back_is_given_back(make().as_ref());
}

const TURN: TurnId = TurnId(Ulid(5));
const DAY_MS: i64 = 24 * 3600 * 1000;

fn started(id: u128, model: &str) -> RowChange {
    RowChange::CallStarted {
        call_id: CallId(Ulid(id)),
        turn_id: TURN,
        actor: Actor::ORCHESTRATOR,
        model: model.into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
    }
}

fn spent(input: u64, output: u64, cost_usd: f64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        // A provider's total may count what neither side shows, such as thinking.
        total_tokens: input + 2 * output,
        reasoning_tokens: output / 2,
        cached_tokens: input / 2,
        cost_usd,
    }
}

fn completed(id: u128, usage: Usage) -> RowChange {
    RowChange::CallEnded {
        call_id: CallId(Ulid(id)),
        end: CallEnd::Completed {
            stop_reason: StopReason::EndTurn,
            usage,
        },
        provider_response_id: Some(format!("theirs-{id}")),
    }
}

fn failed(id: u128) -> RowChange {
    RowChange::CallEnded {
        call_id: CallId(Ulid(id)),
        end: CallEnd::Failed(LlmErrorClass::RateLimited),
        provider_response_id: None,
    }
}

/// An event with rows, at a time.
fn with(maker: &mut Maker, time: i64, changes: Vec<RowChange>) -> Append {
    let mut append = maker.notes(1);
    for change in changes {
        let mut placed = maker.placed(change);
        placed.time = Timestamp::from_millis(time);
        append.rows.push(placed);
    }
    append
}

fn put(store: &dyn Store, maker: &mut Maker, time: i64, changes: Vec<RowChange>) {
    let append = with(maker, time, changes);
    store.append(&[append]).expect("an append");
}

fn calls(store: &dyn Store, session: SessionId) -> Vec<LlmCallRow> {
    store.llm_calls(session, None, 99).expect("calls")
}

fn a_call_is_told_from_its_start_to_its_end(store: &dyn Store) {
    let mut a = Maker::new(1);
    put(store, &mut a, 10, vec![started(1, "local:small")]);
    let open = LlmCallRow {
        call_id: CallId(Ulid(1)),
        turn_id: TURN,
        actor: Actor::ORCHESTRATOR,
        model: "local:small".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        status: CallState::Started,
        error_class: None,
        stop_reason: None,
        usage: None,
        provider_response_id: None,
        started_at: Timestamp::from_millis(10),
        ended_at: None,
    };
    assert_eq!(calls(store, a.session), std::slice::from_ref(&open));
    let usage = spent(10, 4, 0.25);
    put(store, &mut a, 30, vec![completed(1, usage)]);
    let whole = LlmCallRow {
        status: CallState::Completed,
        stop_reason: Some(StopReason::EndTurn),
        usage: Some(usage),
        provider_response_id: Some("theirs-1".into()),
        ended_at: Some(Timestamp::from_millis(30)),
        ..open.clone()
    };
    let call_id = CallId(Ulid(2));
    let inner = RowChange::CallStarted {
        call_id,
        turn_id: TURN,
        actor: Actor::subagent("shop"),
        model: "local:small".into(),
        purpose: CallPurpose::Subagent,
        attempt: 3,
    };
    put(store, &mut a, 40, vec![inner]);
    put(store, &mut a, 50, vec![failed(2)]);
    let broken = LlmCallRow {
        call_id,
        actor: Actor::subagent("shop"),
        purpose: CallPurpose::Subagent,
        attempt: 3,
        status: CallState::Failed,
        error_class: Some(LlmErrorClass::RateLimited),
        started_at: Timestamp::from_millis(40),
        ended_at: Some(Timestamp::from_millis(50)),
        ..open
    };
    assert_eq!(calls(store, a.session), [broken, whole]);
}

fn a_call_that_is_tried_again_under_its_id_tells_the_newest_try(store: &dyn Store) {
    let mut a = Maker::new(1);
    let rows = vec![started(1, "one"), failed(1), started(1, "two")];
    put(store, &mut a, 10, rows);
    let row = &calls(store, a.session)[0];
    let told = (row.model.as_str(), row.status, row.error_class);
    assert_eq!(told, ("two", CallState::Started, None));
    let mut b = Maker::new(2);
    put(store, &mut b, 10, vec![started(1, "three")]);
    let row = &calls(store, a.session)[0];
    assert_eq!(row.model, "two", "another session's id changes nothing");
}

fn calls_come_page_by_page_and_go_with_their_session(store: &dyn Store) {
    let (mut a, mut b) = (Maker::new(1), Maker::new(2));
    put(
        store,
        &mut a,
        10,
        (1..=3).map(|n| started(n, "m")).collect(),
    );
    put(store, &mut b, 10, vec![started(9, "m")]);
    let page = |before: Option<u128>, limit| -> Vec<u128> {
        let before = before.map(|id| CallId(Ulid(id)));
        let rows = store.llm_calls(a.session, before, limit).expect("calls");
        rows.iter().map(|row| row.call_id.0.0).collect()
    };
    assert_eq!(page(None, 2), [3, 2]);
    assert_eq!(page(Some(2), 2), [1]);
    store.delete(a.session).expect("a delete");
    assert!(calls(store, a.session).is_empty());
    assert_eq!(calls(store, b.session).len(), 1, "the other's stay");
}

fn day(number: i64) -> Day {
    Day::of(Timestamp::from_millis(number * DAY_MS))
}

fn used(store: &dyn Store, tenant: Option<u128>, days: (i64, i64)) -> Vec<UsageDay> {
    let days = (day(days.0), day(days.1));
    let rows = store.usage(tenant.map(TenantId), days, 99);
    rows.expect("usage")
}

/// A session of a tenant.
fn of(tenant: u128, id: u128) -> (Maker, SessionRow) {
    let mut row = session_row(id, "local");
    row.owner.tenant = TenantId(tenant);
    (Maker::new(id), row)
}

fn usage_is_summed_by_day_tenant_and_model(store: &dyn Store) {
    let (mut a, row_a) = of(1, 1);
    let (mut b, row_b) = of(2, 2);
    for (maker, row) in [(&mut a, row_a), (&mut b, row_b)] {
        let mut append = maker.notes(1);
        append.rows = vec![maker.placed(RowChange::SessionPut(Box::new(row)))];
        store.append(&[append]).expect("an append");
    }
    let late = 10 * DAY_MS - 1;
    let rows = vec![
        started(1, "x"),
        started(2, "x"),
        started(3, "y"),
        completed(1, spent(10, 4, 0.5)),
        failed(2),
        completed(3, spent(1, 1, 0.0)),
    ];
    put(store, &mut a, late, rows);
    let rows = vec![started(4, "x"), completed(4, spent(20, 8, 0.25))];
    put(store, &mut a, late, rows);
    let rows = vec![started(5, "x"), completed(5, spent(2, 2, 1.0))];
    put(store, &mut a, late + 1, rows);
    let rows = vec![started(6, "x"), completed(6, spent(7, 7, 7.0))];
    put(store, &mut b, late, rows);
    let line = |at, tenant, model: &str, calls, failed, usage| UsageDay {
        day: day(at),
        tenant: TenantId(tenant),
        model: model.into(),
        calls,
        failed,
        usage,
    };
    let first = line(9, 1, "x", 3, 1, spent(30, 12, 0.75));
    let second = line(
        9,
        1,
        "y",
        1,
        0,
        Usage {
            reasoning_tokens: 0,
            ..spent(1, 1, 0.0)
        },
    );
    let third = line(10, 1, "x", 1, 0, spent(2, 2, 1.0));
    let theirs = line(9, 2, "x", 1, 0, spent(7, 7, 7.0));
    let mine = [first.clone(), second.clone(), third.clone()];
    assert_eq!(used(store, Some(1), (0, 20)), mine);
    assert_eq!(used(store, Some(1), (10, 10)), std::slice::from_ref(&third));
    assert_eq!(used(store, Some(2), (0, 20)), std::slice::from_ref(&theirs));
    assert_eq!(used(store, Some(3), (0, 20)), []);
    let all = [first.clone(), second, theirs, third];
    assert_eq!(used(store, None, (0, 20)), all);
    let one = store.usage(None, (day(0), day(20)), 1).expect("usage");
    assert_eq!(one, [first], "no more than asked for");
    store.delete(a.session).expect("a delete");
    assert_eq!(used(store, None, (0, 20)), all, "sums outlive sessions");
}

fn a_call_counts_once(store: &dyn Store) {
    let mut a = Maker::new(1);
    put(store, &mut a, 10, vec![started(1, "m"), failed(1)]);
    put(store, &mut a, 20, vec![completed(1, spent(5, 5, 1.0))]);
    put(store, &mut a, 20, vec![failed(2)]);
    let row = &calls(store, a.session)[0];
    assert_eq!(row.status, CallState::Failed, "an end is an end");
    let used = used(store, None, (0, 1));
    assert_eq!(used.len(), 1);
    assert_eq!((used[0].calls, used[0].failed), (1, 1));
    assert_eq!(used[0].usage, Usage::default());
}

fn numbers_that_cannot_be_do_not_stop_the_log(store: &dyn Store) {
    let mut a = Maker::new(1);
    let wild = Usage {
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        total_tokens: u64::MAX,
        reasoning_tokens: u64::MAX,
        cached_tokens: u64::MAX,
        cost_usd: f64::NAN,
    };
    for id in 1..=4 {
        let rows = vec![
            started(id, "m"),
            RowChange::CostAdd(f64::NAN),
            completed(id, wild),
        ];
        put(store, &mut a, 10, rows);
    }
    let sum = &used(store, None, (0, 1))[0];
    assert_eq!((sum.calls, sum.usage.cost_usd), (4, 0.0));
    assert_eq!(sum.usage.input_tokens, 4 << 40);
    assert_eq!(sum.usage.total_tokens, 4 << 40);
    let row = store
        .session(a.session)
        .expect("a read")
        .expect("a session");
    assert_eq!(row.cost_usd, 0.0);
}

fn a_policy_is_replaced_without_a_turn(store: &dyn Store) {
    let mut a = Maker::new(1);
    put(
        store,
        &mut a,
        10,
        vec![RowChange::PolicyReloaded("2".into())],
    );
    let row = store
        .session(a.session)
        .expect("a read")
        .expect("a session");
    let told = (
        row.routing_policy_version.as_str(),
        row.active_model.as_str(),
    );
    assert_eq!(told, ("2", "scripted:default"));
}

fn a_turn_that_began_before_a_reload_does_not_bring_its_policy_back(store: &dyn Store) {
    let mut a = Maker::new(1);
    let routed = |turn_id, model: &str, version: &str| RowChange::Routed {
        turn_id,
        model: model.into(),
        policy_version: version.into(),
    };
    let told = |session| {
        let row = store.session(session).expect("a read").expect("a session");
        (row.active_model, row.routing_policy_version)
    };
    let pair = |model: &str, version: &str| (model.to_owned(), version.to_owned());
    let [old, new] = [TurnId(Ulid(7)), TurnId(Ulid(8))];
    let started = a.turn_started(old);
    store.append(&[started]).expect("an append");
    put(store, &mut a, 20, vec![routed(old, "m:a", "1a")]);
    assert_eq!(told(a.session), pair("m:a", "1a"));
    let reload = RowChange::PolicyReloaded("2".into());
    put(store, &mut a, 30, vec![reload]);
    put(store, &mut a, 40, vec![routed(old, "m:b", "1a")]);
    assert_eq!(told(a.session), pair("m:b", "2"));
    let started = a.turn_started(new);
    store.append(&[started]).expect("an append");
    put(store, &mut a, 60, vec![routed(new, "m:c", "3")]);
    assert_eq!(told(a.session), pair("m:c", "3"));
}

fn what_a_provider_wants_back_is_given_back(store: &dyn Store) {
    let kept = Kept {
        by: "local".into(),
        blocks: [(0, json!({"id": "toolu_1"})), (7, json!("sealed"))].into(),
    };
    let mut a = Maker::new(1);
    let RowChange::MessagePut(turn, mut new) = message(1, Role::Assistant, Scope::Private) else {
        unreachable!("a message")
    };
    new.kept.clone_from(&kept);
    let append = said(&mut a, RowChange::MessagePut(turn, new));
    store.append(&[append]).expect("an append");
    let finished = FinishedMessage {
        kept: kept.clone(),
        id: MessageId(Ulid(2)),
        status: MessageStatus::Complete,
        stop_reason: StopReason::ToolUse,
        model: "local:small".into(),
        content: vec![ContentBlock::text("hi")],
        usage: Usage::default(),
        started: at(1),
        started_at: Timestamp::from_millis(10),
        cuts: Vec::new(),
        inputs: Vec::new(),
    };
    let append = said(&mut a, RowChange::MessageFinished(turn, Box::new(finished)));
    store.append(&[append]).expect("an append");
    let plain = said(&mut a, message(3, Role::User, Scope::Shared));
    store.append(&[plain]).expect("an append");
    let back = |found: Vec<StoredMessage>| -> Vec<(u128, Kept)> {
        let messages = found.into_iter().map(|stored| stored.message);
        messages.map(|m| (m.id.0.0, m.kept)).collect()
    };
    let expected = [(1, kept.clone()), (2, kept), (3, Kept::default())];
    let all = store.messages(a.session, View::Orchestrator, at(9), None, 9);
    assert_eq!(back(all.expect("messages")), expected);
    let since = store.messages_since(a.session, View::Orchestrator, at(0), at(9));
    assert_eq!(back(since.expect("messages")), expected);
}
