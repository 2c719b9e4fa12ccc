//! Any order of results, repeated, late or past their deadline: one completion, ends are final.

use proptest::prelude::*;

use super::*;

fn key(n: usize) -> Key {
    Key {
        subagent: format!("agent{n}"),
        result_key: format!("tu_{n}"),
    }
}

fn step(slots: usize) -> Step {
    let expected = (0..slots).map(|n| Expected {
        key: key(n),
        deadline: Duration::from_millis(10 * (n as u64 + 1)),
    });
    Step::new("turn-1-1", expected).expect("keys differ")
}

fn statuses(step: &Step) -> Vec<SlotStatus> {
    step.slots().map(|(_, status)| status).collect()
}

#[derive(Clone, Debug)]
enum Act {
    Take(usize, u64, Said),
    Expire(u64),
    Terminate,
    Ask,
}

fn act() -> impl Strategy<Value = Act> {
    let said = prop_oneof![
        Just(Said::Begun),
        Just(Said::Partial),
        Just(Said::Success),
        Just(Said::Error)
    ];
    prop_oneof![
        12 => (0..5usize, 0..4u64, said).prop_map(|(n, r, s)| Act::Take(n, r, s)),
        2 => (0..60u64).prop_map(Act::Expire),
        1 => Just(Act::Terminate),
        3 => Just(Act::Ask),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_in_whatever_order_there_is_one_completion_and_ends_are_final(
        slots in 0..5usize,
        acts in prop::collection::vec(act(), 0..60),
    ) {
        let mut step = step(slots);
        let mut completions = Vec::new();
        let mut seen = HashSet::new();
        for act in acts {
            let before = statuses(&step);
            let over = step.status();
            match act {
                Act::Take(n, revision, said) => {
                    let taken = step.take(&key(n), Revision(revision), said);
                    let expected = if n >= slots {
                        Taken::Unknown
                    } else if seen.contains(&(n, revision)) {
                        Taken::Repeated
                    } else if over.is_some() || is_end(before[n]) {
                        Taken::Late
                    } else {
                        seen.insert((n, revision));
                        Taken::Noted
                    };
                    prop_assert_eq!(taken, expected);
                    if taken != Taken::Noted {
                        prop_assert_eq!(&statuses(&step), &before);
                    }
                }
                Act::Expire(ms) => {
                    step.expire(Duration::from_millis(ms));
                }
                Act::Terminate => step.terminate(),
                Act::Ask => completions.extend(step.completion()),
            }
            for (was, is) in before.iter().zip(statuses(&step)) {
                prop_assert!(!is_end(*was) || *was == is, "{was:?} became {is:?}");
            }
            if let Some(over) = over {
                prop_assert_eq!(step.status(), Some(over));
            }
        }
        prop_assert_eq!(step.status().is_some() || slots > 0, true);
        step.expire(Duration::MAX);
        completions.extend(step.completion());
        completions.extend(step.completion());
        prop_assert_eq!(completions.len(), 1);
        prop_assert_eq!(completions[0].slots.len(), slots);
        prop_assert!(completions[0].slots.iter().all(|slot| is_end(slot.status)));
        prop_assert_eq!(Some(completions[0].status), step.status());
    }
}

#[test]
fn a_step_is_as_good_as_its_slots() {
    let cases = [
        (vec![Said::Success, Said::Success], StepStatus::Success),
        (vec![Said::Success, Said::Error], StepStatus::PartialFailure),
        (vec![Said::Error, Said::Error], StepStatus::Failed),
        (vec![], StepStatus::Success),
    ];
    for (said, status) in cases {
        let mut step = step(said.len());
        for (n, said) in said.into_iter().enumerate() {
            assert_eq!(step.completion(), None, "slots are open");
            assert_eq!(step.take(&key(n), Revision(0), said), Taken::Noted);
        }
        assert_eq!(step.status(), Some(status));
    }
}

#[test]
fn a_deadline_ends_its_slot_alone_and_what_comes_later_changes_nothing() {
    let mut step = step(2);
    assert_eq!(step.expire(Duration::from_millis(9)), []);
    assert_eq!(step.expire(Duration::from_millis(10)), [key(0)]);
    assert_eq!(
        step.take(&key(0), Revision(0), Said::Success),
        Taken::Late,
        "its deadline has passed"
    );
    step.take(&key(1), Revision(0), Said::Success);
    let completion = step.completion().expect("over");
    assert_eq!(completion.status, StepStatus::PartialFailure);
    let ends: Vec<_> = completion.slots.iter().map(|slot| slot.status).collect();
    assert_eq!(ends, [SlotStatus::Timeout, SlotStatus::Success]);
    assert_eq!(step.completion(), None);
}

#[test]
fn a_terminated_step_keeps_what_had_ended() {
    let mut step = step(2);
    step.take(&key(0), Revision(0), Said::Success);
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
fn two_slots_of_one_key_are_refused() {
    let expected = Expected {
        key: key(0),
        deadline: Duration::ZERO,
    };
    let error = Step::new("s", [expected.clone(), expected]).expect_err("one key");
    assert_eq!(error, SlotTaken(key(0)));
}
