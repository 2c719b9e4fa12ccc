//! Cursors: one spelling, what they cover, where a replay starts.

use proptest::prelude::*;
use turnwire_event::Epoch;

use super::*;

fn at(seq: u64, sub: u32) -> Position {
    Position {
        epoch: Epoch(1),
        seq: Seq(seq),
        sub: Sub(sub),
    }
}

prop_compose! {
    fn any_cursor()(seq in 0..(1u64 << 50), sub in 0..=Sub::LAST.0, frame in prop::option::of(0..=9u8)) -> Cursor {
        Cursor { position: at(seq, sub), frame }
    }
}

prop_compose! {
    /// Places near each other, so that they meet.
    fn near()(seq in 0..4u64, sub in prop::sample::select(vec![0, 0, 1, 2, Sub::LAST.0])) -> Position {
        at(seq, sub)
    }
}

proptest! {
    #[test]
    fn a_cursor_reads_back_what_it_prints(cursor in any_cursor()) {
        prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}", tail in "-?.{0,3}") {
        let _ = text.parse::<Cursor>();
        let near = format!("evt_00010000000006{tail}");
        if let Ok(cursor) = near.parse::<Cursor>() {
            prop_assert_eq!(cursor.to_string(), near, "one spelling");
        }
    }

    #[test]
    fn law_2_a_replay_from_since_has_all_that_is_not_covered(
        position in near(), frame in prop::option::of(0..=2u8), event in near(), k in 0..=1u8,
    ) {
        let cursor = Cursor { position, frame };
        // No event stands at seq 0 but transient ones, and those have one frame.
        prop_assume!(event > at(0, 0));
        let k = if event.is_persisted() { k } else { 0 };
        if !cursor.covers(event, k) {
            prop_assert!(event > cursor.since());
        }
    }
}

#[test]
fn law_2_a_cursor_covers_what_came_before_it_and_its_own_frames() {
    let all = Cursor::from(at(6, 0));
    let first: Cursor = "evt_00010000000006-0".parse().expect("a cursor");
    assert!(all.covers(at(6, 0), 1) && all.covers(at(5, 9), 0));
    assert!(first.covers(at(6, 0), 0) && !first.covers(at(6, 0), 1));
    assert!(first.covers(at(5, 9), 3) && !first.covers(at(6, 1), 0));
    assert_eq!(all.since(), at(6, 0));
    assert_eq!(first.since(), at(5, Sub::LAST.0));
    let word: Cursor = "evt_00010000000006.000002-0".parse().expect("a cursor");
    assert_eq!(word.since(), at(6, 2));
    let zero: Cursor = "evt_00010000000000-0".parse().expect("a cursor");
    assert_eq!(zero.since(), at(0, 0));
}

#[test]
fn what_is_no_cursor_is_refused() {
    for bad in [
        "",
        "-0",
        "evt_",
        "6",
        "evt_00010000000006-",
        "evt_00010000000006-10",
        "evt_00010000000006-a",
        "evt_00010000000006-0-0",
        "evt_00010000000006 -0",
        "evt_00010000000006-0\n",
        "evt_0001000000006-0",
        "evt_00010000000006-٣",
    ] {
        assert_eq!(bad.parse::<Cursor>(), Err(BadCursor), "{bad:?}");
    }
}
