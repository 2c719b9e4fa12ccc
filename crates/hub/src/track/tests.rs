//! Ranges of one run: their sizes, their slices by filter, and the memory that a track counts.

use turnwire_event::{Actor, Epoch, FilterSpec, Position, Seq, Ulid};

use super::*;

/// The frames of the entries, by number.
const FRAMES: [&str; 5] = ["a", "bb", "ccc", "dddd", "eeeee"];

fn entry(seq: usize, kind: EventType, bytes: usize) -> RingEntry {
    RingEntry {
        head: EventHead {
            position: Position::persisted(Epoch(1), Seq(seq as u64)),
            kind,
            turn: None,
            actor: Actor::USER,
            suppressed: false,
        },
        bytes: vec![b'x'; bytes].into(),
    }
}

fn frame(entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
    let seq = entry.head.position.seq.0;
    out.extend_from_slice(FRAMES[seq as usize].as_bytes());
    seq
}

fn entries(kinds: [EventType; 5]) -> Vec<RingEntry> {
    let kinds = kinds.into_iter().enumerate();
    kinds.map(|(seq, kind)| entry(seq, kind, 1)).collect()
}

/// A track whose entries have these kinds, the first at index 0.
fn track(kinds: [EventType; 5]) -> FrameTrack {
    let mut track = FrameTrack::default();
    track.extend(0, &entries(kinds), &frame);
    track
}

const ROUTE: EventType = EventType::RouteDecided;
const START: EventType = EventType::TurnStarted;

/// Calls `look` with the range of the track from index `from`.
fn range<T>(track: &FrameTrack, from: u64, look: impl Fn(FrameRun<'_>) -> T) -> T {
    let mut seen = Vec::new();
    let after = track.read(from, 100, &mut |run| seen.push(look(run)));
    assert_eq!(after, 5);
    assert_eq!(seen.len(), 1, "one run");
    seen.remove(0)
}

fn slices(run: &FrameRun<'_>, filter: &EventFilter) -> Vec<(String, usize)> {
    let mut slices = Vec::new();
    run.select(filter, |bytes, count| {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        slices.push((text, count));
    });
    slices
}

fn slice(text: &str, count: usize) -> (String, usize) {
    (text.to_owned(), count)
}

#[test]
fn range_has_the_sizes_of_its_events() {
    let track = track([ROUTE; 5]);
    let sizes = |from| {
        range(&track, from, |run| {
            let heads = run.heads().iter().map(|head| head.position.seq.0);
            (run.len(), run.bytes(), heads.collect::<Vec<_>>())
        })
    };
    assert_eq!(sizes(0), (5, 15, vec![0, 1, 2, 3, 4]));
    assert_eq!(sizes(2), (3, 12, vec![2, 3, 4]));
    let shortened = |n| range(&track, 2, |run| (run.first(n).len(), run.first(n).bytes()));
    assert_eq!(
        [shortened(0), shortened(2), shortened(9)],
        [(0, 0), (2, 7), (3, 12)]
    );
    assert!(range(&track, 2, |run| run.first(0).is_empty() && !run.is_empty()));
}

#[test]
fn frames_fit_while_their_sum_is_within_the_bound() {
    let track = track([ROUTE; 5]);
    let fitting = |from, bytes| range(&track, from, |run| run.fitting(bytes));
    let whole = [0, 1, 2, 3, 5, 6, 15, 99].map(|bytes| fitting(0, bytes));
    assert_eq!(whole, [0, 1, 1, 2, 2, 3, 5, 5]);
    let rest = [2, 3, 6, 7, 12].map(|bytes| fitting(2, bytes));
    assert_eq!(rest, [0, 1, 1, 2, 3]);
    assert_eq!(range(&track, 0, |run| run.first(2).fitting(99)), 2);
}

#[test]
fn matching_neighbours_are_one_slice() {
    let only_routes = EventFilter::of(TypeSet::EMPTY.with(ROUTE));
    let mixed = track([START, ROUTE, ROUTE, START, ROUTE]);
    let from = |from, filter: &EventFilter| range(&mixed, from, |run| slices(&run, filter));
    assert_eq!(
        from(0, &only_routes),
        [slice("bbccc", 2), slice("eeeee", 1)]
    );
    assert_eq!(from(2, &only_routes), [slice("ccc", 1), slice("eeeee", 1)]);
    assert_eq!(from(3, &only_routes), [slice("eeeee", 1)]);
    assert_eq!(from(1, &EventFilter::full()), [slice("bbcccddddeeeee", 4)]);
    let starts = EventFilter::of(TypeSet::EMPTY.with(START));
    assert_eq!(from(0, &starts), [slice("a", 1), slice("dddd", 1)]);
    let none = EventFilter::of(TypeSet::EMPTY);
    assert_eq!(from(0, &none), []);
}

#[test]
fn suppressed_event_splits_a_slice_unless_it_is_included() {
    let mut entries = entries([ROUTE; 5]);
    entries[2].head.suppressed = true;
    let mut track = FrameTrack::default();
    track.extend(0, &entries, &frame);
    let all = |filter: &EventFilter| range(&track, 0, |run| slices(&run, filter));
    let shown = EventFilter::of(TypeSet::EMPTY.with(ROUTE));
    assert_eq!(all(&shown), [slice("abb", 2), slice("ddddeeeee", 2)]);
    let spec = FilterSpec {
        include_suppressed: true,
        ..FilterSpec::default()
    };
    let included = EventFilter::resolve(&spec).expect("a filter");
    assert_eq!(all(&included), [slice("abbcccddddeeeee", 5)]);
}

#[test]
fn weight_counts_frames_and_heads_until_they_are_trimmed() {
    let weight = |entries: &[RingEntry], project: ProjectFn<'_>| {
        let mut track = FrameTrack::default();
        let end = entries.len() as u64;
        let added = track.extend(0, entries, project);
        assert_eq!(track.extend(end, entries, project), added);
        assert_eq!(track.weight(), 2 * added);
        assert_eq!(track.trim(end), added);
        assert_eq!(track.trim(2 * end), added);
        assert_eq!(track.weight(), 0);
        added
    };
    let long = |_: &RingEntry, out: &mut Vec<u8>| {
        out.extend_from_slice(&[b'x'; 1_000]);
        0
    };
    let all = entries([ROUTE; 5]);
    assert_eq!(weight(&all, &long) - weight(&all, &frame), 5 * 1_000 - 15);
    let per_event = size_of::<EventHead>() + size_of::<u64>() + size_of::<u32>();
    let of_one_event = weight(&all[..3], &long) - weight(&all[..2], &long);
    assert_eq!(of_one_event, 1_000 + per_event);
    // An event alone is inline.
    let run = size_of::<(u64, ProjectedRun)>() + BUFFER_BYTES;
    assert_eq!(weight(&all[..1], &long), run + 1_000);
    let two = run + 3 * BUFFER_BYTES + 2 * (1_000 + per_event);
    assert_eq!(weight(&all[..2], &long), two);
    let [short, longer] = [1, 901].map(|bytes| entry(0, ROUTE, bytes).weight());
    assert_eq!(longer - short, 900);
    assert!(short > size_of::<RingEntry>());
}

#[test]
fn large_entries_are_runs_of_their_own() {
    let half = RUN_BYTES_MAX / 2;
    let sizes = [half, half, 1, RUN_BYTES_MAX + 1, 1];
    let numbered = sizes.into_iter().enumerate();
    let entries: Vec<_> = numbered
        .map(|(seq, bytes)| entry(seq, ROUTE, bytes))
        .collect();
    let mut track = FrameTrack::default();
    track.extend(7, &entries, &frame);
    let mut lengths = Vec::new();
    let after = track.read(7, 100, &mut |run| lengths.push(run.len()));
    assert_eq!((lengths, after, track.next()), (vec![2, 1, 1, 1], 12, 12));
    let mut lengths = Vec::new();
    let after = track.read(8, 2, &mut |run| lengths.push(run.len()));
    assert_eq!((lengths, after), (vec![1, 1], 10));
    // A run leaves when all of its entries have.
    let whole = track.weight();
    assert_eq!(track.trim(8), 0);
    assert!(track.trim(9) > 0 && track.weight() < whole);
}

#[test]
fn read_ends_after_its_bytes() {
    let large = |_: &RingEntry, out: &mut Vec<u8>| {
        out.resize(out.len() + READ_BYTES_MAX / 2 - 1, b'x');
        0
    };
    let mut track = FrameTrack::default();
    for index in 0..6 {
        track.extend(index, &[entry(0, ROUTE, 1)], &large);
    }
    let mut count = 0;
    let after = track.read(1, 100, &mut |_| count += 1);
    assert_eq!((after, count), (4, 3), "one run more than fits");
}

/// The slices of a turn, each with its numbers of heads and tags, and whether the turn has ended.
fn of_turn(run: &FrameRun<'_>, turn: TurnId) -> (Vec<(String, usize, usize)>, bool) {
    let mut slices = Vec::new();
    let ended = run.select_turn(turn, |bytes, heads, tags| {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        slices.push((text, heads.len(), tags.len()));
    });
    (slices, ended)
}

#[test]
fn frames_of_a_turn_end_with_its_terminal() {
    let [one, two] = [1, 2].map(|number| TurnId(Ulid(number)));
    let track = |kinds: [EventType; 5], turns: [Option<TurnId>; 5]| {
        let mut entries = entries(kinds);
        for (entry, turn) in entries.iter_mut().zip(turns) {
            entry.head.turn = turn;
        }
        let mut track = FrameTrack::default();
        track.extend(0, &entries, &frame);
        track
    };
    let all = |text: &str, count| (text.to_owned(), count, count);
    for end in [EventType::TurnCompleted, EventType::TurnCancelled] {
        let whole = track([START, ROUTE, ROUTE, ROUTE, end], [Some(one); 5]);
        let seen = range(&whole, 1, |run| of_turn(&run, one));
        assert_eq!(seen, (vec![all("bbcccddddeeeee", 4)], true));
        let open = range(&whole, 1, |run| of_turn(&run.first(3), one));
        assert_eq!(open, (vec![all("bbcccdddd", 3)], false));
        // Behind its terminal a turn has nothing that a client is sent.
        let turns = [Some(one), None, Some(one), Some(two), Some(one)];
        let mixed = track([START, ROUTE, end, end, ROUTE], turns);
        let seen = range(&mixed, 0, |run| of_turn(&run, one));
        assert_eq!(seen, (vec![all("a", 1), all("ccc", 1)], true));
        let other = range(&mixed, 0, |run| of_turn(&run, two));
        assert_eq!(other, (vec![all("dddd", 1)], true));
    }
    let shared = track(
        [ROUTE; 5],
        [Some(one), Some(one), Some(one), Some(two), Some(two)],
    );
    let seen = range(&shared, 0, |run| of_turn(&run.first(2), one));
    assert_eq!(seen, (vec![all("abb", 2)], false), "no event of the rest");
    let running = track([START, ROUTE, ROUTE, ROUTE, ROUTE], [Some(one); 5]);
    let seen = range(&running, 0, |run| of_turn(&run, one));
    assert_eq!(seen, (vec![all("abbcccddddeeeee", 5)], false));
    assert_eq!(
        range(&running, 0, |run| of_turn(&run, two)),
        (vec![], false)
    );
}
