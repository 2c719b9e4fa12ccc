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
fn heard(pieces: Vec<Bytes>) -> Told {
    let transport = Arc::new(Pieces(pieces));
    let params = Params::default();
    let remote = Remote::new("local", Arc::new(Tiny), transport, params, PATIENT, None);
    let remote = remote.limits(Limits {
        frame_bytes_max: 64,
        call_bytes_max: 400,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let all = remote.stream(request()).collect::<Vec<_>>();
    all.now_or_never().expect("nothing to wait for")
}

fn byte() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(vec![
            &b"data: say hi\n\n"[..], b"data: stop\n\n", b"data: fail\n\n", b"data: say ",
            b"\n\n", b"\r\n\r\n", b": ping\n", b"\xef\xbb\xbf", b"data: say \xc3\xa9",
        ])
        .prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_say_the_same_and_end_once(
        words in prop::collection::vec(byte(), 0..40),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = Bytes::from(words.concat());
        let whole = heard(vec![bytes.clone()]);
        let single = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
        let mut rest = bytes.clone();
        let mut cut = Vec::new();
        for place in places {
            cut.push(rest.split_to(place.index(rest.len() + 1)));
        }
        cut.push(rest);
        if bytes.len() <= 400 {
            prop_assert_eq!(&heard(single), &whole);
            prop_assert_eq!(&heard(cut), &whole);
        } else {
            // Where the cap falls depends on the pieces; that it falls does not.
            prop_assert!(heard(single).len() >= whole.len());
        }
        let last = |delta: &Result<Delta, ModelError>| matches!(delta, Ok(Delta::Stop { .. }) | Err(_));
        prop_assert_eq!(whole.iter().filter(|delta| last(delta)).count(), 1);
        prop_assert!(whole.last().is_some_and(last));
    }
}
