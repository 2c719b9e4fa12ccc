//! Properties for any bytes: a call ends, never panics, and yields the same deltas however the
//! bytes are split.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use futures_util::stream::{iter, poll_fn, repeat};
use futures_util::{FutureExt as _, Stream};
use proptest::prelude::*;
use turnwire_event::port::BoxFuture;

use super::*;

/// Returns the same chunks for every call.
struct FixedChunks(Vec<Bytes>);

/// Sends pings as fast as they are read.
struct PingFlood;

fn reply(
    chunks: impl Stream<Item = Bytes> + Send + 'static,
) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
    let chunks = chunks.map(Ok).boxed();
    Box::pin(async move {
        Ok(TransportResponse {
            status: 200,
            retry_after: None,
            is_event_stream: true,
            chunks,
        })
    })
}

impl ModelTransport for FixedChunks {
    fn open(
        &self,
        _: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        reply(iter(self.0.clone()))
    }
}

impl ModelTransport for PingFlood {
    fn open(
        &self,
        _: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        reply(repeat(Bytes::from_static(b": ping\n\n")))
    }
}

#[tokio::test]
async fn ping_flood_yields_to_other_tasks_and_times_out() {
    let flood = |timeouts| {
        let (dialect, params) = (Arc::new(TestDialect), ModelParams::default());
        let remote = RemoteProvider::new(
            "local",
            dialect,
            Arc::new(PingFlood),
            params,
            timeouts,
            None,
        );
        remote.with_limits(ModelResponseLimits {
            call_bytes_max: u64::MAX,
            ..ModelResponseLimits::default()
        })
    };
    let short = CallTimeouts {
        total: SHORT,
        ..NO_TIMEOUT
    };
    let timeout_item = transient(LlmErrorClass::Timeout);
    assert_eq!(collect(&flood(short)).await, [timeout_item]);

    let mut endless = flood(NO_TIMEOUT).stream(request());
    let other_task = tokio::spawn(async {});
    tokio::select! {
        item = endless.next() => panic!("{item:?}"),
        result = other_task => assert!(result.is_ok()),
    }
}

/// Sends a complete answer, and records whether the body was read to its end.
struct ObservedBody(Arc<AtomicBool>);

impl ModelTransport for ObservedBody {
    fn open(
        &self,
        _: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        let read_to_end = Arc::clone(&self.0);
        let end = poll_fn(move |_| {
            read_to_end.store(true, Ordering::SeqCst);
            Poll::Ready(None)
        });
        reply(iter([Bytes::from_static(b"data: stop\n\n")]).chain(end))
    }
}

/// A connection is reused only if the body was read to its end.
#[tokio::test]
async fn body_is_read_to_its_end_after_the_answer() {
    let read_to_end = Arc::new(AtomicBool::new(false));
    let transport = Arc::new(ObservedBody(Arc::clone(&read_to_end)));
    let params = ModelParams::default();
    let remote = RemoteProvider::new(
        "local",
        Arc::new(TestDialect),
        transport,
        params,
        NO_TIMEOUT,
        None,
    );
    let mut stream = remote.stream(request());
    assert_eq!(stream.next().await, Some(stop(0.0)));
    assert!(read_to_end.load(Ordering::SeqCst));
}

/// The items of a call whose body is these chunks; nothing in it waits.
fn items_of(
    dialect: &Arc<dyn VendorDialect>,
    limits: ModelResponseLimits,
    pieces: Vec<Bytes>,
) -> DeltaResults {
    let transport = Arc::new(FixedChunks(pieces));
    let (dialect, params) = (Arc::clone(dialect), ModelParams::default());
    let remote = RemoteProvider::new("local", dialect, transport, params, NO_TIMEOUT, None);
    let remote = remote.with_limits(limits);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let items = remote.stream(request()).collect::<Vec<_>>();
    items.now_or_never().expect("nothing to wait for")
}

/// The bytes one by one, and split at these places.
fn split(bytes: &Bytes, places: &[prop::sample::Index]) -> [Vec<Bytes>; 2] {
    let single = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
    let mut remaining = bytes.clone();
    let mut pieces = Vec::new();
    for place in places {
        pieces.push(remaining.split_to(place.index(remaining.len() + 1)));
    }
    pieces.push(remaining);
    [single, pieces]
}

/// True if the only end is the last item.
fn has_one_final_end(items: &DeltaResults) -> bool {
    let is_end =
        |delta: &Result<Delta, ModelError>| matches!(delta, Ok(Delta::Stop { .. }) | Err(_));
    items.iter().filter(|delta| is_end(delta)).count() == 1 && items.last().is_some_and(is_end)
}

/// Pieces of a stream in the test dialect, and random bytes.
fn stream_piece() -> impl Strategy<Value = Vec<u8>> {
    let frames = vec![
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
        3 => prop::sample::select(frames).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

/// A stream of a vendor's frames in any order, with some bytes changed.
fn vendor() -> impl Strategy<Value = (usize, Bytes)> {
    let vendors = vendor_frames::all();
    let order = prop::collection::vec(any::<prop::sample::Index>(), 0..16);
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changes = prop_oneof![Just(Vec::new()), prop::collection::vec(change, 0..4)];
    let vendor_index = 0..vendors.len();
    (vendor_index, order, changes).prop_map(move |(vendor_index, order, changes)| {
        let frames = order.iter().map(|at| *at.get(vendors[vendor_index].1));
        let mut bytes = frames.collect::<String>().into_bytes();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        (vendor_index, bytes.into())
    })
}

proptest! {
    #[test]
    fn any_bytes_split_anyhow_give_equal_items_and_one_end(
        stream_pieces in prop::collection::vec(stream_piece(), 0..40),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let dialect: Arc<dyn VendorDialect> = Arc::new(TestDialect);
        let limits = ModelResponseLimits { frame_bytes_max: 64, call_bytes_max: 400 };
        let bytes = Bytes::from(stream_pieces.concat());
        let unsplit = items_of(&dialect, limits, vec![bytes.clone()]);
        prop_assert!(has_one_final_end(&unsplit), "{:?}", unsplit);
        for pieces in split(&bytes, &places) {
            let items = items_of(&dialect, limits, pieces);
            if bytes.len() <= 400 {
                prop_assert_eq!(&items, &unsplit);
            } else {
                // The chunk that reaches the limit depends on the split; the limit does not.
                prop_assert!(items.len() >= unsplit.len() && has_one_final_end(&items));
            }
        }
    }

    #[test]
    fn vendor_frames_split_anyhow_give_equal_items_and_one_end(
        (vendor_index, bytes) in vendor(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (dialect, _) = &vendor_frames::all()[vendor_index];
        let unsplit = items_of(dialect, ModelResponseLimits::default(), vec![bytes.clone()]);
        prop_assert!(has_one_final_end(&unsplit), "{:?}", unsplit);
        for pieces in split(&bytes, &places) {
            prop_assert_eq!(&items_of(dialect, ModelResponseLimits::default(), pieces), &unsplit);
        }
    }
}

/// The frames used above do contain an answer.
#[test]
fn vendor_frames_in_order_are_an_answer() {
    for (dialect, frames) in vendor_frames::all() {
        let bytes = Bytes::from(frames.concat());
        let items = items_of(&dialect, ModelResponseLimits::default(), vec![bytes]);
        let (name, stop) = (dialect.name(), items.last());
        assert!(
            matches!(stop, Some(Ok(Delta::Stop { .. }))),
            "{name}: {items:?}"
        );
        let has_text = items
            .iter()
            .any(|delta| matches!(delta, Ok(Delta::Text { .. })));
        let has_tool = items
            .iter()
            .any(|delta| matches!(delta, Ok(Delta::ToolEnd { .. })));
        assert!(has_text && has_tool, "{name}: {items:?}");
    }
}
