//! Model calls, usage by day, the routing of a session, provider data of a message.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::body::llm::CallStarted;
use turnwire_event::code::{CallPurpose, CallState, LlmErrorClass};
use turnwire_event::row::{
    FinishedMessage, LlmCallRow, MessageScope, ModelCallEnd, RowChange, SessionRow,
};
use turnwire_event::{
    Actor, CallId, ContentBlock, Message, MessageId, MessageStatus, Owner, ProviderState, Role,
    SessionId, StopReason, TenantId, Timestamp, TokenUsage, TurnId, Ulid, UtcDay,
};

use super::message::message;
use crate::records::{DailyUsage, MessageView, PageBounds};
use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, at, owner, session_row};

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    call_row_follows_start_and_end(create().as_ref());
    retried_call_shows_the_newest_attempt(create().as_ref());
    calls_are_paged_and_deleted_with_their_session(create().as_ref());
    usage_is_summed_by_day_tenant_and_model(create().as_ref());
    usage_is_summed_by_principal_and_expires(create().as_ref());
    call_is_counted_once(create().as_ref());
    stopped_call_has_its_usage_and_is_not_failed(create().as_ref());
    impossible_numbers_do_not_fail_the_append(create().as_ref());
    policy_reload_without_a_turn_updates_the_session(create().as_ref());
    turn_from_before_a_reload_keeps_the_new_policy(create().as_ref());
    provider_data_of_a_message_is_returned(create().as_ref());
}

const TURN: TurnId = TurnId(Ulid(5));
const DAY_MS: i64 = 24 * 3600 * 1000;

fn started(id: u128, model: &str) -> RowChange {
    RowChange::CallStarted {
        turn_id: TURN,
        actor: Actor::ORCHESTRATOR,
        call: CallStarted {
            call_id: CallId(Ulid(id)),
            model: model.into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first: false,
        },
    }
}

fn usage_of(input: u64, output: u64, cost_usd: f64) -> TokenUsage {
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        // A provider's total may count what neither side shows, such as thinking.
        total_tokens: input + 2 * output,
        reasoning_tokens: output / 2,
        cached_tokens: input / 2,
        cost_usd,
        estimated: false,
    }
}

fn completed(id: u128, usage: TokenUsage) -> RowChange {
    RowChange::CallEnded {
        call_id: CallId(Ulid(id)),
        end: ModelCallEnd::Completed {
            stop_reason: StopReason::EndTurn,
            usage,
        },
        provider_response_id: Some(format!("theirs-{id}")),
    }
}

fn failed(id: u128) -> RowChange {
    ended_early(id, LlmErrorClass::RateLimited, TokenUsage::default())
}

fn ended_early(id: u128, error_class: LlmErrorClass, usage: TokenUsage) -> RowChange {
    RowChange::CallEnded {
        call_id: CallId(Ulid(id)),
        end: ModelCallEnd::Failed { error_class, usage },
        provider_response_id: None,
    }
}

/// Appends an event with row changes at a time.
fn put(store: &dyn Store, builder: &mut BatchBuilder, time: i64, changes: Vec<RowChange>) {
    let mut append = builder.events(1);
    for change in changes {
        let mut placed = builder.placed(change);
        placed.time = Timestamp::from_millis(time);
        append.rows.push(placed);
    }
    store.append(&[append]).expect("an append");
}

fn calls(store: &dyn Store, session: SessionId) -> Vec<LlmCallRow> {
    store
        .llm_calls(session, None, 99.into())
        .expect("calls")
        .rows
}

fn call_row_follows_start_and_end(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
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
    let usage = usage_of(10, 4, 0.25);
    put(store, &mut a, 30, vec![completed(1, usage)]);
    let completed_row = LlmCallRow {
        status: CallState::Completed,
        stop_reason: Some(StopReason::EndTurn),
        usage: Some(usage),
        provider_response_id: Some("theirs-1".into()),
        ended_at: Some(Timestamp::from_millis(30)),
        ..open.clone()
    };
    let call_id = CallId(Ulid(2));
    let subagent_call = RowChange::CallStarted {
        turn_id: TURN,
        actor: Actor::subagent("shop"),
        call: CallStarted {
            call_id,
            model: "local:small".into(),
            purpose: CallPurpose::Subagent,
            attempt: 3,
            first: false,
        },
    };
    put(store, &mut a, 40, vec![subagent_call]);
    put(store, &mut a, 50, vec![failed(2)]);
    let failed_row = LlmCallRow {
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
    assert_eq!(calls(store, a.session), [failed_row, completed_row]);
}

fn retried_call_shows_the_newest_attempt(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let rows = vec![started(1, "one"), failed(1), started(1, "two")];
    put(store, &mut a, 10, rows);
    let row = &calls(store, a.session)[0];
    let attempt = (row.model.as_str(), row.status, row.error_class);
    assert_eq!(attempt, ("two", CallState::Started, None));
    let mut b = BatchBuilder::new(2);
    put(store, &mut b, 10, vec![started(1, "three")]);
    let row = &calls(store, a.session)[0];
    assert_eq!(
        row.model, "two",
        "the id of another session changes nothing"
    );
}

fn calls_are_paged_and_deleted_with_their_session(store: &dyn Store) {
    let (mut a, mut b) = (BatchBuilder::new(1), BatchBuilder::new(2));
    put(
        store,
        &mut a,
        10,
        (1..=3).map(|n| started(n, "m")).collect(),
    );
    put(store, &mut b, 10, vec![started(9, "m")]);
    let page = |before: Option<u128>, limit| -> Vec<u128> {
        let before = before.map(|id| CallId(Ulid(id)));
        let page = store.llm_calls(a.session, before, PageBounds::from(limit));
        let rows = page.expect("calls").rows;
        rows.iter().map(|row| row.call_id.0.0).collect()
    };
    assert_eq!(page(None, 2), [3, 2]);
    assert_eq!(page(Some(2), 2), [1]);
    store.delete(&[a.session], &[]).expect("a delete");
    assert!(calls(store, a.session).is_empty());
    assert_eq!(
        calls(store, b.session).len(),
        1,
        "calls of the other session stay"
    );
}

fn day(number: i64) -> UtcDay {
    UtcDay::of(Timestamp::from_millis(number * DAY_MS))
}

fn daily_usage(store: &dyn Store, tenant: Option<u128>, days: (i64, i64)) -> Vec<DailyUsage> {
    let days = (day(days.0), day(days.1));
    let rows = store.daily_usage(tenant.map(TenantId), days, 99);
    rows.expect("usage")
}

/// A builder for a session of `tenant`, and the session's row.
fn session_of(tenant: u128, id: u128) -> (BatchBuilder, SessionRow) {
    let mut row = session_row(id, "local");
    row.owner.tenant = TenantId(tenant);
    (BatchBuilder::new(id), row)
}

fn usage_is_summed_by_day_tenant_and_model(store: &dyn Store) {
    let (mut a, row_a) = session_of(1, 1);
    let (mut b, row_b) = session_of(2, 2);
    for (builder, row) in [(&mut a, row_a), (&mut b, row_b)] {
        let mut append = builder.events(1);
        append.rows = vec![builder.placed(RowChange::SessionPut(Box::new(row)))];
        store.append(&[append]).expect("an append");
    }
    let last_ms = 10 * DAY_MS - 1;
    let rows = vec![
        started(1, "x"),
        started(2, "x"),
        started(3, "y"),
        completed(1, usage_of(10, 4, 0.5)),
        failed(2),
        completed(3, usage_of(1, 1, 0.0)),
    ];
    put(store, &mut a, last_ms, rows);
    let rows = vec![started(4, "x"), completed(4, usage_of(20, 8, 0.25))];
    put(store, &mut a, last_ms, rows);
    let rows = vec![started(5, "x"), completed(5, usage_of(2, 2, 1.0))];
    put(store, &mut a, last_ms + 1, rows);
    let rows = vec![started(6, "x"), completed(6, usage_of(7, 7, 7.0))];
    put(store, &mut b, last_ms, rows);
    let usage_day = |number, tenant, model: &str, calls, failed, usage| DailyUsage {
        day: day(number),
        tenant: TenantId(tenant),
        model: model.into(),
        calls,
        failed,
        stopped: 0,
        usage,
    };
    let first = usage_day(9, 1, "x", 3, 1, usage_of(30, 12, 0.75));
    let second = usage_day(
        9,
        1,
        "y",
        1,
        0,
        TokenUsage {
            reasoning_tokens: 0,
            ..usage_of(1, 1, 0.0)
        },
    );
    let third = usage_day(10, 1, "x", 1, 0, usage_of(2, 2, 1.0));
    let other_tenant = usage_day(9, 2, "x", 1, 0, usage_of(7, 7, 7.0));
    let tenant_usage = [first.clone(), second.clone(), third.clone()];
    assert_eq!(daily_usage(store, Some(1), (0, 20)), tenant_usage);
    assert_eq!(
        daily_usage(store, Some(1), (10, 10)),
        std::slice::from_ref(&third)
    );
    assert_eq!(
        daily_usage(store, Some(2), (0, 20)),
        std::slice::from_ref(&other_tenant)
    );
    assert_eq!(daily_usage(store, Some(3), (0, 20)), []);
    let all = [first.clone(), second, other_tenant, third];
    assert_eq!(daily_usage(store, None, (0, 20)), all);
    let one = store
        .daily_usage(None, (day(0), day(20)), 1)
        .expect("usage");
    assert_eq!(one, [first], "no more than the limit");
    store.delete(&[a.session], &[]).expect("a delete");
    assert_eq!(
        daily_usage(store, None, (0, 20)),
        all,
        "usage outlives its sessions"
    );
}

fn usage_is_summed_by_principal_and_expires(store: &dyn Store) {
    let mut builders = Vec::new();
    for (id, tenant, principal) in [(1, 1, "ann"), (2, 1, "ann"), (3, 1, "bob"), (4, 2, "ann")] {
        let mut row = session_row(id, principal);
        row.owner.tenant = TenantId(tenant);
        let mut builder = BatchBuilder::new(id);
        let mut append = builder.events(1);
        append.rows = vec![builder.placed(RowChange::SessionPut(Box::new(row)))];
        store.append(&[append]).expect("an append");
        builders.push(builder);
    }
    let last_ms = 10 * DAY_MS - 1;
    for (id, builder) in (1..).zip(&mut builders) {
        let usage = usage_of(10_u64.pow(id), 0, 0.5);
        let rows = vec![started(id.into(), "x"), completed(id.into(), usage)];
        put(store, builder, last_ms, rows);
    }
    let next_day = vec![started(9, "y"), completed(9, usage_of(7, 0, 0.25))];
    put(store, &mut builders[0], last_ms + 1, next_day);
    let sums = |tenant, principal, number| {
        let owner = Owner {
            tenant: TenantId(tenant),
            ..owner(principal)
        };
        let on = store.usage_on(&owner, day(number)).expect("usage");
        [on.principal, on.tenant].map(|sum| (sum.tokens, sum.cost_usd))
    };
    assert_eq!(sums(1, "ann", 9), [(110, 1.0), (1_110, 1.5)]);
    assert_eq!(sums(1, "bob", 9), [(1_000, 0.5), (1_110, 1.5)]);
    assert_eq!(sums(2, "ann", 9), [(10_000, 0.5), (10_000, 0.5)]);
    assert_eq!(sums(2, "bob", 9), [(0, 0.0), (10_000, 0.5)]);
    assert_eq!(sums(3, "ann", 9), [(0, 0.0), (0, 0.0)]);
    assert_eq!(sums(1, "ann", 10), [(7, 0.25), (7, 0.25)]);
    let ids = builders.iter().map(|builder| builder.session);
    store
        .delete(&ids.collect::<Vec<_>>(), &[])
        .expect("a delete");
    assert_eq!(
        sums(1, "ann", 9)[0],
        (110, 1.0),
        "usage outlives its sessions"
    );
    let expire = |number, max| store.expire_usage(day(number), max).expect("an expiry");
    assert_eq!(
        (expire(9, 10), expire(10, 2), expire(10, 2), expire(10, 2)),
        (0, 2, 1, 0)
    );
    assert_eq!(sums(1, "ann", 9), [(0, 0.0), (1_110, 1.5)]);
    assert_eq!(sums(1, "ann", 10)[0], (7, 0.25));
}

fn stopped_call_has_its_usage_and_is_not_failed(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let estimate = TokenUsage {
        estimated: true,
        ..usage_of(30, 12, 0.75)
    };
    let rows = vec![
        started(1, "m"),
        started(2, "m"),
        started(3, "m"),
        completed(1, usage_of(10, 4, 0.5)),
        ended_early(2, LlmErrorClass::Cancelled, estimate),
        ended_early(3, LlmErrorClass::Transport, usage_of(1, 1, 0.25)),
    ];
    put(store, &mut a, 10, rows);
    let stored = calls(store, a.session).into_iter();
    let stored: Vec<_> = stored.map(|row| (row.call_id.0.0, row.usage)).collect();
    assert!(stored.contains(&(2, Some(estimate))), "{stored:?}");
    let days = daily_usage(store, None, (0, 1));
    let [day] = &days[..] else {
        panic!("{days:?}");
    };
    assert_eq!((day.calls, day.failed, day.stopped), (3, 1, 1));
    let sum = usage_of(10, 4, 0.5)
        .plus(estimate)
        .plus(usage_of(1, 1, 0.25));
    assert_eq!(day.usage, sum);
    assert!(day.usage.estimated);
}

fn call_is_counted_once(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    put(store, &mut a, 10, vec![started(1, "m"), failed(1)]);
    put(store, &mut a, 20, vec![completed(1, usage_of(5, 5, 1.0))]);
    put(store, &mut a, 20, vec![failed(2)]);
    let row = &calls(store, a.session)[0];
    assert_eq!(row.status, CallState::Failed, "the first end counts");
    let usage = daily_usage(store, None, (0, 1));
    assert_eq!(usage.len(), 1);
    assert_eq!((usage[0].calls, usage[0].failed), (1, 1));
    assert_eq!(usage[0].usage, TokenUsage::default());
}

fn impossible_numbers_do_not_fail_the_append(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let impossible = TokenUsage {
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        total_tokens: u64::MAX,
        reasoning_tokens: u64::MAX,
        cached_tokens: u64::MAX,
        cost_usd: f64::NAN,
        estimated: false,
    };
    for id in 1..=4 {
        let rows = vec![
            started(id, "m"),
            RowChange::CostAdd(f64::NAN),
            completed(id, impossible),
        ];
        put(store, &mut a, 10, rows);
    }
    let sum = &daily_usage(store, None, (0, 1))[0];
    assert_eq!((sum.calls, sum.usage.cost_usd), (4, 0.0));
    assert_eq!(sum.usage.input_tokens, 4 << 40);
    assert_eq!(sum.usage.total_tokens, 4 << 40);
    let row = store.session(a.session).expect("a read");
    let row = row.expect("a session");
    assert_eq!(row.cost_usd, 0.0);
}

fn policy_reload_without_a_turn_updates_the_session(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    put(
        store,
        &mut a,
        10,
        vec![RowChange::PolicyReloaded("2".into())],
    );
    let row = store.session(a.session).expect("a read");
    let row = row.expect("a session");
    let routing = (
        row.routing_policy_version.as_str(),
        row.active_model.as_str(),
    );
    assert_eq!(routing, ("2", "scripted:default"));
}

fn turn_from_before_a_reload_keeps_the_new_policy(store: &dyn Store) {
    // No policy routes the turn of an agent elsewhere.
    const RELAYED: &str = "";
    let mut a = BatchBuilder::new(1);
    let routed = |turn_id, model: &str, version: &str| RowChange::Routed {
        turn_id,
        model: model.into(),
        policy_version: (version != RELAYED).then(|| version.into()),
        response_id: None,
    };
    let routing = |session| {
        let row = store.session(session).expect("a read").expect("a session");
        (row.active_model, row.routing_policy_version)
    };
    let pair = |model: &str, version: &str| (model.to_owned(), version.to_owned());
    let [old, new] = [TurnId(Ulid(7)), TurnId(Ulid(8))];
    let started = a.turn_started(old);
    store.append(&[started]).expect("an append");
    put(store, &mut a, 20, vec![routed(old, "m:a", "1a")]);
    assert_eq!(routing(a.session), pair("m:a", "1a"));
    let reload = RowChange::PolicyReloaded("2".into());
    put(store, &mut a, 30, vec![reload]);
    put(store, &mut a, 40, vec![routed(old, "m:b", "1a")]);
    assert_eq!(routing(a.session), pair("m:b", "2"));
    let started = a.turn_started(new);
    store.append(&[started]).expect("an append");
    put(store, &mut a, 60, vec![routed(new, "m:c", "3")]);
    assert_eq!(routing(a.session), pair("m:c", "3"));
    put(store, &mut a, 70, vec![routed(new, "relay:desk", RELAYED)]);
    assert_eq!(routing(a.session), pair("relay:desk", "3"));
}

fn provider_data_of_a_message_is_returned(store: &dyn Store) {
    let data = ProviderState {
        by: "local".into(),
        blocks: [(0, json!({"id": "toolu_1"})), (7, json!("sealed"))].into(),
    };
    let mut a = BatchBuilder::new(1);
    let RowChange::MessagePut(turn, mut new) = message(1, Role::Assistant, MessageScope::Private)
    else {
        unreachable!("a message")
    };
    new.provider_state.clone_from(&data);
    let append = a.event_with(RowChange::MessagePut(turn, new));
    store.append(&[append]).expect("an append");
    let finished = FinishedMessage {
        provider_state: data.clone(),
        id: MessageId(Ulid(2)),
        status: MessageStatus::Complete,
        stop_reason: StopReason::ToolUse,
        model: "local:small".into(),
        content: vec![ContentBlock::text("hi")],
        usage: TokenUsage::default(),
        started: at(1),
        started_at: Timestamp::from_millis(10),
        cuts: Vec::new(),
        inputs: Vec::new(),
    };
    let append = a.event_with(RowChange::MessageFinished(turn, Box::new(finished)));
    store.append(&[append]).expect("an append");
    let plain = a.event_with(message(3, Role::User, MessageScope::Shared));
    store.append(&[plain]).expect("an append");
    let provider_data = |messages: Vec<Message>| -> Vec<(u128, ProviderState)> {
        let messages = messages.into_iter();
        messages.map(|m| (m.id.0.0, m.provider_state)).collect()
    };
    let expected = [(1, data.clone()), (2, data), (3, ProviderState::default())];
    let all = store.messages(a.session, MessageView::Orchestrator, at(9), None, 9.into());
    assert_eq!(provider_data(all.expect("messages").rows), expected);
    let since = store.messages_since(a.session, MessageView::Orchestrator, at(0), at(9));
    let since = since.expect("messages").into_iter();
    let since = since.map(|stored| stored.message).collect();
    assert_eq!(provider_data(since), expected);
}
