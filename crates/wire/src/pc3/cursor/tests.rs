//! Cursors: their text form, the frames they cover, and the start of a replay.

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
    fn any_cursor()(seq in 0..(1u64 << 50), sub in 0..=Sub::LAST.0, frame in prop::option::of((0..=9u8, prop::option::of(any::<u128>())))) -> FrameCursor {
        let tag = |random| SessionTag::of(SessionId(turnwire_event::Ulid(random)));
        FrameCursor {
            position: at(seq, sub),
            frame: frame.map(|(frame, _)| frame),
            tag: frame.and_then(|(_, session)| session.map(tag)),
        }
    }
}

prop_compose! {
    /// Positions close to each other, so that some are equal.
    fn near()(seq in 0..4u64, sub in prop::sample::select(vec![0, 0, 1, 2, Sub::LAST.0])) -> Position {
        at(seq, sub)
    }
}

proptest! {
    #[test]
    fn cursor_parses_its_own_text(cursor in any_cursor()) {
        prop_assert_eq!(cursor.to_string().parse::<FrameCursor>(), Ok(cursor));
    }

    #[test]
    fn parsing_any_text_never_panics(text in ".{0,40}", tail in "(-?.{0,3}|-[0-9]-[0-9A-Z]{3,5})") {
        let _ = text.parse::<FrameCursor>();
        let near = format!("evt_00010000000006{tail}");
        if let Ok(cursor) = near.parse::<FrameCursor>() {
            prop_assert_eq!(cursor.to_string(), near, "one spelling");
        }
    }

    // LAW-2
    #[test]
    fn replay_from_since_has_every_uncovered_frame(
        position in near(), frame in prop::option::of(0..=2u8), event in near(), k in 0..=1u8,
    ) {
        let cursor = FrameCursor { position, frame, tag: None };
        // Only transient events are at seq 0, and they have one frame each.
        prop_assume!(event > at(0, 0));
        let k = if event.is_persisted() { k } else { 0 };
        if !cursor.covers(event, k) {
            prop_assert!(event > cursor.replay_start());
        }
    }
}

// LAW-2
#[test]
fn cursor_covers_earlier_events_and_own_frames() {
    let all = FrameCursor::from(at(6, 0));
    let first: FrameCursor = "evt_00010000000006-0".parse().expect("a cursor");
    assert!(all.covers(at(6, 0), 1) && all.covers(at(5, 9), 0));
    assert!(first.covers(at(6, 0), 0) && !first.covers(at(6, 0), 1));
    assert!(first.covers(at(5, 9), 3) && !first.covers(at(6, 1), 0));
    assert_eq!(all.replay_start(), at(6, 0));
    assert_eq!(first.replay_start(), at(5, Sub::LAST.0));
    let word: FrameCursor = "evt_00010000000006.000002-0".parse().expect("a cursor");
    assert_eq!(word.replay_start(), at(6, 2));
    let zero: FrameCursor = "evt_00010000000000-0".parse().expect("a cursor");
    assert_eq!(zero.replay_start(), at(0, 0));
}

#[test]
fn malformed_cursors_are_rejected() {
    for bad in [
        "",
        "-0",
        "evt_",
        "6",
        "evt_00010000000006-",
        "evt_00010000000006-10",
        "evt_00010000000006-a",
        "evt_00010000000006-0-0",
        "evt_00010000000006-0-9K3",
        "evt_00010000000006-0-9K3TT",
        "evt_00010000000006-0-9k3t",
        "evt_00010000000006-0-9K3U",
        "evt_00010000000006-0-9K3T-0",
        "evt_00010000000006-9K3T",
        "evt_00010000000006 -0",
        "evt_00010000000006-0\n",
        "evt_0001000000006-0",
        "evt_00010000000006-٣",
    ] {
        assert_eq!(bad.parse::<FrameCursor>(), Err(InvalidCursor), "{bad:?}");
    }
}

#[test]
fn tag_tells_sessions_apart() {
    let cursor: FrameCursor = "evt_00010000000006-0-9K3T".parse().expect("a cursor");
    let session = |id: &str| -> SessionId { id.parse().expect("a session") };
    assert!(cursor.may_be_of(session("sess_01M7QW3RVKEN68DWNB5XFR9K3T")));
    assert!(!cursor.may_be_of(session("sess_01M7QW3RVKEN68DWNB5XFR9K3V")));
    let untagged: FrameCursor = "evt_00010000000006-0".parse().expect("a cursor");
    assert!(untagged.may_be_of(session("sess_01M7QW3RVKEN68DWNB5XFR9K3V")));
}
