//! Tests of [`FairSlots`]: bounds, the order of the queue, requests that are dropped.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::{FairLimits, FairRefusal, FairSlot, FairSlots};

fn slots(total: usize, per_owner: usize, waiting: usize) -> Arc<FairSlots<&'static str>> {
    FairSlots::new(FairLimits {
        total,
        per_owner,
        waiting: 2 * waiting,
        waiting_per_owner: waiting,
    })
}

type Acquire = Pin<Box<dyn Future<Output = Result<FairSlot<&'static str>, FairRefusal>>>>;

fn request(slots: &Arc<FairSlots<&'static str>>, owner: &'static str) -> Acquire {
    let slots = slots.clone();
    let mut acquire: Acquire = Box::pin(async move { slots.acquire(&owner).await });
    assert!(poll(&mut acquire).is_pending());
    acquire
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn both_bounds_hold_and_name_themselves() {
    let slots = slots(3, 2, 0);
    let held = [slots.try_acquire(&"ann"), slots.try_acquire(&"ann")];
    assert_eq!(
        slots.try_acquire(&"ann").err(),
        Some(FairRefusal::OwnerFull)
    );
    let other = slots.try_acquire(&"bob");
    assert!(other.is_ok());
    assert_eq!(slots.try_acquire(&"cid").err(), Some(FairRefusal::AllFull));
    drop(held);
    assert_eq!((slots.held(), slots.held_by(&"bob")), (1, 1));
    assert!(slots.try_acquire(&"cid").is_ok());
}

#[test]
fn free_slot_goes_to_the_owner_with_the_fewest() {
    let slots = slots(3, 3, 4);
    let mut ann = vec![
        slots.try_acquire(&"ann"),
        slots.try_acquire(&"ann"),
        slots.try_acquire(&"ann"),
    ];
    let mut first_of_ann = request(&slots, "ann");
    let mut bob = request(&slots, "bob");
    let mut cid = request(&slots, "cid");
    ann.pop();
    let slot_of_bob = poll(&mut bob);
    assert!(slot_of_bob.is_ready());
    assert!(poll(&mut first_of_ann).is_pending() && poll(&mut cid).is_pending());
    ann.pop();
    assert!(poll(&mut cid).is_ready());
}

#[test]
fn owner_at_its_bound_does_not_delay_others() {
    let slots = slots(4, 2, 4);
    let held = [slots.try_acquire(&"ann"), slots.try_acquire(&"ann")];
    let mut waiting = request(&slots, "ann");
    assert!(slots.try_acquire(&"bob").is_ok());
    assert!(poll(&mut waiting).is_pending());
    drop(held);
    assert!(poll(&mut waiting).is_ready());
}

#[test]
fn dropped_requests_leave_the_queue() {
    let slots = slots(1, 1, 1);
    let held = slots.try_acquire(&"ann");
    let waiting = request(&slots, "bob");
    let mut second = Box::pin(slots.acquire(&"bob"));
    assert!(matches!(
        poll(&mut second),
        Poll::Ready(Err(FairRefusal::OwnerFull))
    ));
    drop(waiting);
    let served_and_dropped = request(&slots, "bob");
    drop(held);
    assert_eq!(slots.held_by(&"bob"), 1);
    drop(served_and_dropped);
    assert_eq!(slots.held(), 0);
    assert!(slots.state.lock().owners.is_empty());
}

#[test]
fn waiting_requests_are_bounded_in_all() {
    let slots = slots(1, 1, 1);
    let _held = slots.try_acquire(&"ann");
    let waiting = [request(&slots, "bob"), request(&slots, "cid")];
    let refused = |owner| {
        let result = poll(&mut Box::pin(slots.acquire(&owner)));
        matches!(result, Poll::Ready(Err(FairRefusal::AllFull)))
    };
    assert!(refused("dan"));
    drop(waiting);
    assert!(!refused("dan"));
}

proptest! {
    #[test]
    fn any_history_keeps_the_bounds_and_serves_all(
        steps in proptest::collection::vec((0_usize..4, 0_usize..3, 0_usize..8), 0..200)
    ) {
        const OWNERS: [&str; 3] = ["ann", "bob", "cid"];
        let slots = slots(4, 3, 5);
        let mut held = Vec::new();
        let mut waiting: Vec<Acquire> = Vec::new();
        for (act, owner, index) in steps {
            match act {
                0 => held.extend(slots.try_acquire(&OWNERS[owner])),
                1 => {
                    let (slots, owner) = (slots.clone(), OWNERS[owner]);
                    waiting.push(Box::pin(async move { slots.acquire(&owner).await }));
                }
                2 if index < held.len() => drop(held.swap_remove(index)),
                3 if index < waiting.len() => drop(waiting.swap_remove(index)),
                _ => {}
            }
            waiting.retain_mut(|request| match poll(request) {
                Poll::Ready(result) => {
                    held.extend(result);
                    false
                }
                Poll::Pending => true,
            });
            let of = |owner| slots.held_by(&owner);
            prop_assert!(OWNERS.into_iter().all(|owner| of(owner) <= 3));
            prop_assert_eq!(OWNERS.into_iter().map(of).sum::<usize>(), held.len());
            prop_assert_eq!(slots.held(), held.len());
            prop_assert!(held.len() <= 4);
        }
        while let Some(slot) = held.pop() {
            drop(slot);
            waiting.retain_mut(|request| match poll(request) {
                Poll::Ready(result) => {
                    held.extend(result);
                    false
                }
                Poll::Pending => true,
            });
        }
        prop_assert!(waiting.is_empty());
        prop_assert!(slots.state.lock().owners.is_empty());
    }
}
