//! Reports in any order, repeated, late or after the deadline: one completion, final slots stay.

use proptest::prelude::*;

use super::*;

fn key(n: usize) -> SlotKey {
    SlotKey {
        subagent: format!("agent{n}"),
        result_key: format!("tu_{n}"),
    }
}

fn step(slots: usize) -> Step {
    let expected = (0..slots).map(|n| ExpectedSlot {
        key: key(n),
        deadline: Duration::from_millis(10 * (n as u64 + 1)),
    });
    Step::new("turn-1-1", expected).expect("keys differ")
}

fn statuses(step: &Step) -> Vec<SlotStatus> {
    step.slots().map(|(_, status)| status).collect()
}

#[derive(Clone, Debug)]
enum Action {
    Take(usize, u64, SlotReport),
    Expire(u64),
    Terminate,
    Complete,
}

fn action() -> impl Strategy<Value = Action> {
    let report = prop_oneof![
        Just(SlotReport::Started),
        Just(SlotReport::Partial),
        Just(SlotReport::Success),
        Just(SlotReport::Error)
    ];
    prop_oneof![
        12 => (0..5usize, 0..4u64, report).prop_map(|(n, r, s)| Action::Take(n, r, s)),
        2 => (0..60u64).prop_map(Action::Expire),
        1 => Just(Action::Terminate),
        3 => Just(Action::Complete),
    ]
}

proptest! {
    #[test]
    fn any_order_of_reports_yields_one_completion(
        slots in 0..5usize,
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let mut step = step(slots);
        let mut completions = Vec::new();
        let mut applied = HashSet::new();
        for action in actions {
            let before = statuses(&step);
            let final_status = step.status();
            match action {
                Action::Take(n, revision, report) => {
                    let effect = step.report(&key(n), ResultRevision(revision), report);
                    let expected = if n >= slots {
                        ReportEffect::UnknownSlot
                    } else if applied.contains(&(n, revision)) {
                        ReportEffect::Duplicate
                    } else if final_status.is_some() || is_final(before[n]) {
                        ReportEffect::Late
                    } else {
                        applied.insert((n, revision));
                        ReportEffect::Applied
                    };
                    prop_assert_eq!(effect, expected);
                    if effect != ReportEffect::Applied {
                        prop_assert_eq!(&statuses(&step), &before);
                    }
                }
                Action::Expire(ms) => {
                    step.expire(Duration::from_millis(ms));
                }
                Action::Terminate => step.terminate(),
                Action::Complete => completions.extend(step.completion()),
            }
            for (was, is) in before.iter().zip(statuses(&step)) {
                prop_assert!(!is_final(*was) || *was == is, "{was:?} became {is:?}");
            }
            if let Some(final_status) = final_status {
                prop_assert_eq!(step.status(), Some(final_status));
            }
        }
        prop_assert_eq!(step.status().is_some() || slots > 0, true);
        step.expire(Duration::MAX);
        completions.extend(step.completion());
        completions.extend(step.completion());
        prop_assert_eq!(completions.len(), 1);
        prop_assert_eq!(completions[0].slots.len(), slots);
        prop_assert!(completions[0].slots.iter().all(|slot| is_final(slot.status)));
        prop_assert_eq!(Some(completions[0].status), step.status());
    }
}

#[test]
fn step_status_follows_from_its_slots() {
    let cases = [
        (
            vec![SlotReport::Success, SlotReport::Success],
            StepStatus::Success,
        ),
        (
            vec![SlotReport::Success, SlotReport::Error],
            StepStatus::PartialFailure,
        ),
        (
            vec![SlotReport::Error, SlotReport::Error],
            StepStatus::Failed,
        ),
        (vec![], StepStatus::Success),
    ];
    for (report, status) in cases {
        let mut step = step(report.len());
        for (n, report) in report.into_iter().enumerate() {
            assert_eq!(step.completion(), None, "slots are open");
            assert_eq!(
                step.report(&key(n), ResultRevision(0), report),
                ReportEffect::Applied
            );
        }
        assert_eq!(step.status(), Some(status));
    }
}

#[test]
fn deadline_times_out_its_slot_only() {
    let mut step = step(2);
    assert_eq!(step.expire(Duration::from_millis(9)), []);
    assert_eq!(step.expire(Duration::from_millis(10)), [key(0)]);
    assert_eq!(
        step.report(&key(0), ResultRevision(0), SlotReport::Success),
        ReportEffect::Late,
        "its deadline has passed"
    );
    step.report(&key(1), ResultRevision(0), SlotReport::Success);
    let completion = step.completion().expect("over");
    assert_eq!(completion.status, StepStatus::PartialFailure);
    let ends: Vec<_> = completion.slots.iter().map(|slot| slot.status).collect();
    assert_eq!(ends, [SlotStatus::Timeout, SlotStatus::Success]);
    assert_eq!(step.completion(), None);
}

#[test]
fn terminated_step_keeps_final_slots() {
    let mut step = step(2);
    step.report(&key(0), ResultRevision(0), SlotReport::Success);
    step.terminate();
    let completion = step.completion().expect("over");
    assert_eq!(completion.status, StepStatus::Terminated);
    assert_eq!(
        statuses(&step),
        [SlotStatus::Success, SlotStatus::Error],
        "the open one is an error"
    );
}

#[test]
fn two_slots_with_one_key_are_rejected() {
    let expected = ExpectedSlot {
        key: key(0),
        deadline: Duration::ZERO,
    };
    let error = Step::new("s", [expected.clone(), expected]).expect_err("one key");
    assert_eq!(error, DuplicateSlot(key(0)));
}
