//! Quotas at their edges: the last that is allowed, the first that is not, for both scopes.

use turnwire_log::UsageSum;

use super::*;

fn owner(tenant: u128, principal: &str) -> Owner {
    Owner {
        tenant: TenantId(tenant),
        principal: principal.parse().expect("a principal"),
    }
}

fn quotas(principal: QuotaLimits, tenant: QuotaLimits) -> Quotas {
    Quotas::new(principal, tenant)
}

fn turns(limit: u64) -> QuotaLimits {
    QuotaLimits {
        turns_per_minute: Some(limit),
        ..QuotaLimits::default()
    }
}

fn day(tokens: u64, micro_usd: u64) -> QuotaLimits {
    QuotaLimits {
        tokens_per_day: Some(tokens),
        cost_micro_usd_per_day: Some(micro_usd),
        ..QuotaLimits::default()
    }
}

#[test]
fn turn_of_a_principal_and_of_its_tenant_count() {
    let quotas = quotas(turns(2), turns(3));
    let accept = |owner: &Owner| quotas.count_turn(owner).map(CountedTurn::keep);
    let scope = |result: Result<(), QuotaExceeded>| result.map_err(|refused| refused.scope);
    let (ann, bob, eve) = (owner(1, "ann"), owner(1, "bob"), owner(2, "ann"));
    assert_eq!(accept(&ann), Ok(()));
    assert_eq!(accept(&ann), Ok(()));
    assert_eq!(scope(accept(&ann)), Err(QuotaScope::Principal));
    assert_eq!(
        accept(&bob),
        Ok(()),
        "the refusal used nothing of the tenant"
    );
    assert_eq!(scope(accept(&bob)), Err(QuotaScope::Tenant));
    let left = quotas.submit_states(&bob, None, Timestamp::from_millis(0));
    let left: Vec<_> = left.iter().map(|state| (state.scope, state.left)).collect();
    let expected = [(QuotaScope::Principal, 1), (QuotaScope::Tenant, 0)];
    assert_eq!(
        left, expected,
        "the tenant's refusal used nothing of the principal"
    );
    assert_eq!(accept(&eve), Ok(()), "the same name in another tenant");
}

#[test]
fn turn_that_is_not_accepted_counts_for_nobody() {
    let quotas = quotas(turns(1), turns(1));
    let ann = owner(1, "ann");
    drop(quotas.count_turn(&ann).expect("a turn"));
    quotas.count_turn(&ann).expect("a turn").keep();
    assert!(quotas.count_turn(&ann).is_err());
}

#[test]
fn day_is_used_up_at_its_limit_and_not_before() {
    let quotas = quotas(day(100, 2_000_000), day(1_000, 5_000_000));
    let noon = Timestamp::from_millis(12 * 3600 * 1000);
    let check = |own: (u64, f64), all: (u64, f64)| {
        let sum = |(tokens, cost_usd)| UsageSum { tokens, cost_usd };
        let used = UsageOn {
            principal: sum(own),
            tenant: sum(all),
        };
        let checked = quotas.check_day(used, noon);
        checked.map_err(|refused| (refused.scope, refused.kind, refused.limit, refused.retry_in))
    };
    let half_day = Duration::from_secs(12 * 3600);
    let (own, tenant) = (QuotaScope::Principal, QuotaScope::Tenant);
    assert_eq!(check((99, 1.999_999), (999, 4.999_999)), Ok(()));
    let tokens = (own, QuotaKind::Tokens, 100, half_day);
    assert_eq!(check((100, 0.0), (100, 0.0)), Err(tokens));
    let cost = (own, QuotaKind::Cost, 2_000_000, half_day);
    assert_eq!(check((0, 2.0), (0, 2.0)), Err(cost));
    let tokens = (tenant, QuotaKind::Tokens, 1_000, half_day);
    assert_eq!(check((0, 0.0), (1_000, 0.0)), Err(tokens));
    let cost = (tenant, QuotaKind::Cost, 5_000_000, half_day);
    assert_eq!(check((0, 0.0), (0, 7.5)), Err(cost));
}

#[test]
fn replay_that_uses_the_last_byte_is_the_last_one() {
    let limits = QuotaLimits {
        replay_bytes_per_minute: Some(1_000_000),
        ..QuotaLimits::default()
    };
    let quotas = quotas(QuotaLimits::default(), limits);
    let (ann, bob) = (owner(1, "ann"), owner(1, "bob"));
    assert_eq!(quotas.check_replay(&ann), Ok(()));
    quotas.charge_replay(&ann, 900_000);
    assert_eq!(quotas.check_replay(&bob), Ok(()));
    quotas.charge_replay(&bob, 2_100_000);
    let refused = quotas.check_replay(&ann).expect_err("nothing is left");
    assert_eq!(refused.scope, QuotaScope::Tenant);
    assert!(
        (115..=120).contains(&refused.retry_in.as_secs()),
        "{refused:?}"
    );
}

#[test]
fn without_quotas_nothing_is_refused_or_told() {
    let quotas = quotas(QuotaLimits::default(), QuotaLimits::default());
    let ann = owner(1, "ann");
    for _ in 0..100 {
        quotas.count_turn(&ann).expect("a turn").keep();
        assert_eq!(quotas.count_subscribe(&ann), Ok(()));
        quotas.charge_replay(&ann, u64::MAX);
        assert_eq!(quotas.check_replay(&ann), Ok(()));
    }
    assert!(!quotas.has_daily());
    let now = Timestamp::from_millis(0);
    assert_eq!(
        quotas.submit_states(&ann, Some(UsageOn::default()), now),
        []
    );
    assert_eq!(quotas.read_states(&ann), []);
}

#[test]
fn day_ends_at_midnight_utc() {
    let hours = |ms| until_midnight(Timestamp::from_millis(ms)).as_secs_f64() / 3600.0;
    assert_eq!(hours(0), 24.0);
    assert_eq!(hours(6 * 3600 * 1000), 18.0);
    assert_eq!(
        until_midnight(Timestamp::from_millis(24 * 3600 * 1000 - 1)).as_millis(),
        1
    );
}
