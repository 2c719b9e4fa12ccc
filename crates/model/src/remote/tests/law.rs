//! What holds for any bytes: a call ends, never panics, and does not care how the bytes are cut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use futures_util::stream::{iter, poll_fn, repeat};
use futures_util::{FutureExt as _, Stream};
use proptest::prelude::*;
use turnwire_event::port::BoxFuture;

use super::*;

/// Plays the same pieces for every call.
struct Pieces(Vec<Bytes>);

/// Pings as fast as they are asked for.
struct Pings;

fn reply(
    chunks: impl Stream<Item = Bytes> + Send + 'static,
) -> BoxFuture<'static, Result<Reply, ModelError>> {
    let chunks = chunks.map(Ok).boxed();
    Box::pin(async move {
        Ok(Reply {
            status: 200,
            retry_after: None,
            events: true,
            chunks,
        })
    })
}

impl Transport for Pieces {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        reply(iter(self.0.clone()))
    }
}

impl Transport for Pings {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        reply(repeat(Bytes::from_static(b": ping\n\n")))
    }
}

#[tokio::test]
async fn a_flood_that_is_always_ready_leaves_others_their_turn_and_ends_in_time() {
    let flood = |timeouts| {
        let (dialect, params) = (Arc::new(Tiny), Params::default());
        let remote = Remote::new("local", dialect, Arc::new(Pings), params, timeouts, None);
        remote.limits(Limits {
            call_bytes_max: u64::MAX,
            ..Limits::default()
        })
    };
    let short = Timeouts {
        total: SHORT,
        ..PATIENT
    };
    let late = passing(LlmErrorClass::Timeout);
    assert_eq!(told(&flood(short)).await, [late]);

    let mut endless = flood(PATIENT).stream(request());
    let others = tokio::spawn(async {});
    tokio::select! {
        said = endless.next() => panic!("{said:?}"),
        ran = others => assert!(ran.is_ok()),
    }
}

/// Says all there is to say, and tells whether it was heard to its end.
struct Whole(Arc<AtomicBool>);

impl Transport for Whole {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let heard = Arc::clone(&self.0);
        let end = poll_fn(move |_| {
            heard.store(true, Ordering::SeqCst);
            Poll::Ready(None)
        });
        reply(iter([Bytes::from_static(b"data: stop\n\n")]).chain(end))
    }
}

/// A connection is used again only if the body was read to its end.
#[tokio::test]
async fn the_end_of_the_body_is_heard_though_the_answer_is_whole_before() {
    let heard = Arc::new(AtomicBool::new(false));
    let whole = Arc::new(Whole(Arc::clone(&heard)));
    let params = Params::default();
    let remote = Remote::new("local", Arc::new(Tiny), whole, params, PATIENT, None);
    let mut stream = remote.stream(request());
    assert_eq!(stream.next().await, Some(stop(0.0)));
    assert!(heard.load(Ordering::SeqCst));
}

/// What a call says that is answered with these pieces; none of it takes any time.
fn heard(dialect: &Arc<dyn Dialect>, limits: Limits, pieces: Vec<Bytes>) -> Told {
    let transport = Arc::new(Pieces(pieces));
    let (dialect, params) = (Arc::clone(dialect), Params::default());
    let remote = Remote::new("local", dialect, transport, params, PATIENT, None);
    let remote = remote.limits(limits);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let all = remote.stream(request()).collect::<Vec<_>>();
    all.now_or_never().expect("nothing to wait for")
}

/// The same bytes one by one, and cut at these places.
fn cut(bytes: &Bytes, places: &[prop::sample::Index]) -> [Vec<Bytes>; 2] {
    let single = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
    let mut rest = bytes.clone();
    let mut pieces = Vec::new();
    for place in places {
        pieces.push(rest.split_to(place.index(rest.len() + 1)));
    }
    pieces.push(rest);
    [single, pieces]
}

/// Whether there is one end, and it is the last that is said.
fn ends_once(told: &Told) -> bool {
    let last = |delta: &Result<Delta, ModelError>| matches!(delta, Ok(Delta::Stop { .. }) | Err(_));
    told.iter().filter(|delta| last(delta)).count() == 1 && told.last().is_some_and(last)
}

/// Pieces of a stream in the dialect of the tests, and bytes that mean nothing.
fn scrap() -> impl Strategy<Value = Vec<u8>> {
    let words = vec![
        &b"data: say hi\n\n"[..],
        b"data: stop\n\n",
        b"data: fail\n\n",
        b"data: say ",
        b"\n\n",
        b"\r\n\r\n",
        b": ping\n",
        b"\xef\xbb\xbf",
        b"data: say \xc3\xa9",
    ];
    prop_oneof![
        3 => prop::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

/// A stream in some vendor's words: their frames in any order, with some bytes changed.
fn vendor() -> impl Strategy<Value = (usize, Bytes)> {
    let vendors = vendors::all();
    let order = prop::collection::vec(any::<prop::sample::Index>(), 0..16);
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changes = prop_oneof![Just(Vec::new()), prop::collection::vec(change, 0..4)];
    let which = 0..vendors.len();
    (which, order, changes).prop_map(move |(which, order, changes)| {
        let frames = order.iter().map(|at| *at.get(vendors[which].1));
        let mut bytes = frames.collect::<String>().into_bytes();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        (which, bytes.into())
    })
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_say_the_same_and_end_once(
        scraps in prop::collection::vec(scrap(), 0..40),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let dialect: Arc<dyn Dialect> = Arc::new(Tiny);
        let limits = Limits { frame_bytes_max: 64, call_bytes_max: 400 };
        let bytes = Bytes::from(scraps.concat());
        let whole = heard(&dialect, limits, vec![bytes.clone()]);
        prop_assert!(ends_once(&whole), "{:?}", whole);
        for pieces in cut(&bytes, &places) {
            let told = heard(&dialect, limits, pieces);
            if bytes.len() <= 400 {
                prop_assert_eq!(&told, &whole);
            } else {
                // Where the cap falls depends on the pieces; that it falls does not.
                prop_assert!(told.len() >= whole.len() && ends_once(&told));
            }
        }
    }

    #[test]
    fn every_vendors_frames_in_any_order_and_pieces_say_the_same_and_end_once(
        (which, bytes) in vendor(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (dialect, _) = &vendors::all()[which];
        let whole = heard(dialect, Limits::default(), vec![bytes.clone()]);
        prop_assert!(ends_once(&whole), "{:?}", whole);
        for pieces in cut(&bytes, &places) {
            prop_assert_eq!(&heard(dialect, Limits::default(), pieces), &whole);
        }
    }
}

/// What the law above is tried with says something at all.
#[test]
fn every_vendors_frames_in_their_order_are_an_answer() {
    for (dialect, frames) in vendors::all() {
        let bytes = Bytes::from(frames.concat());
        let told = heard(&dialect, Limits::default(), vec![bytes]);
        let (name, stop) = (dialect.name(), told.last());
        assert!(
            matches!(stop, Some(Ok(Delta::Stop { .. }))),
            "{name}: {told:?}"
        );
        let said = told
            .iter()
            .any(|delta| matches!(delta, Ok(Delta::Text { .. })));
        let asked = told
            .iter()
            .any(|delta| matches!(delta, Ok(Delta::ToolEnd { .. })));
        assert!(said && asked, "{name}: {told:?}");
    }
}
