//! A recorded call plays back unchanged: the same chunks and, decoded, the same deltas. Failures,
//! drops and concurrent calls are recorded as they happened.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use futures_util::stream::iter;
use proptest::prelude::*;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{ContentBlock, Role, StopReason, TokenUsage};

use super::super::{CASSETTE_PROVIDER, CassettePlayback, CassetteProvider, parse};
use super::*;
use crate::delta::Delta;
use crate::dialect::{
    EncodeInput, EncodedRequest, ErrorResponse, ModelParams, SseEvent, StreamDecoder, VendorDialect,
};
use crate::provider::ModelProvider;
use crate::remote::{CallTimeouts, RemoteProvider};
use crate::request::{ModelMessage, ModelRequest};

/// A transport with the same response for every call.
struct FixedResponse {
    status: u16,
    chunks: Vec<Result<Vec<u8>, ModelError>>,
    error: Option<ModelError>,
}

impl FixedResponse {
    fn with_chunks(chunks: Vec<Vec<u8>>) -> Self {
        Self {
            status: 200,
            chunks: chunks.into_iter().map(Ok).collect(),
            error: None,
        }
    }
}

impl ModelTransport for FixedResponse {
    fn open(&self, _: TransportRequest) -> ResponseFuture {
        let (status, error) = (self.status, self.error.clone());
        let chunks = self.chunks.clone();
        Box::pin(async move {
            match error {
                Some(error) => Err(error),
                None => Ok(TransportResponse {
                    status,
                    retry_after: Some(Duration::from_secs(2)),
                    is_event_stream: true,
                    chunks: iter(chunks).map(|chunk| chunk.map(Bytes::from)).boxed(),
                }),
            }
        })
    }
}

/// A dialect in which every frame is a text and `stop` is the end.
struct PlainDialect;
struct PlainDecoder(bool);

impl VendorDialect for PlainDialect {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn headers(&self, _: Option<&str>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/plain".into(),
            body: input.request.user_text().into(),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(PlainDecoder(false))
    }

    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        match response.retry_after {
            Some(after) => {
                let again = crate::delta::RetryHint::After(after);
                ModelError::new(LlmErrorClass::RateLimited, again)
            }
            None => LlmErrorClass::Provider.into(),
        }
    }
}

impl StreamDecoder for PlainDecoder {
    fn step(&mut self, frame: SseEvent<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if frame.data == "stop" {
            self.0 = true;
            out.push_back(Delta::Stop {
                reason: StopReason::EndTurn,
                usage: TokenUsage::default(),
            });
        } else if !self.0 {
            let text = frame.data.to_owned();
            out.push_back(Delta::Text { block: 0, text });
        }
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match self.0 {
            true => Ok(()),
            false => Err(ModelError::transient(LlmErrorClass::Transport)),
        }
    }
}

fn request(model: &str) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        agent: "shop".into(),
        call: 1,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(ModelMessage::new(
            Role::User,
            vec![ContentBlock::text("top secret words")],
        ))],
        tools: [].into(),
    }
}

type DeltaResults = Vec<Result<Delta, ModelError>>;

async fn deltas(provider: &dyn ModelProvider, model: &str) -> DeltaResults {
    provider.stream(request(model)).collect().await
}

fn remote(transport: Arc<dyn ModelTransport>) -> RemoteProvider {
    let (params, timeouts) = (ModelParams::default(), CallTimeouts::default());
    RemoteProvider::new(
        "local",
        Arc::new(PlainDialect),
        transport,
        params,
        timeouts,
        None,
    )
}

fn player(path: &Path) -> CassetteProvider {
    let text = std::fs::read_to_string(path).expect("a file");
    let tape = CassettePlayback::parse("c.jsonl", &text, 0.0).expect("a cassette");
    let dialects =
        |name: &str| (name == "plain").then(|| Arc::new(PlainDialect) as Arc<dyn VendorDialect>);
    CassetteProvider::new(
        BTreeMap::from([("c".to_owned(), tape)]),
        Arc::new(dialects),
        None,
    )
}

/// The deltas of the recorded call, those of its playback, and the calls on the cassette.
async fn record_and_play(
    response: FixedResponse,
) -> (DeltaResults, DeltaResults, Vec<RecordedCall>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let writer = Arc::new(CassetteWriter::open(&path).expect("a deck"));
    let recorder = RecordingTransport::new(Arc::new(response), "plain", Arc::clone(&writer));
    let recorded_deltas = deltas(&remote(Arc::new(recorder)), "local:m").await;
    writer.flush();
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(!text.contains("top secret"), "{text}");
    let calls = parse("c", &text).expect("a cassette");
    let played_deltas = deltas(&player(&path), &format!("{CASSETTE_PROVIDER}:c")).await;
    (recorded_deltas, played_deltas, calls)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(work)
}

#[test]
fn failed_calls_play_back_with_the_same_error() {
    let class = LlmErrorClass::Transport;
    let transport_error = ModelError::transient(class);
    let text = || Ok(b"data: one\n\n".to_vec());
    let cases = [
        FixedResponse {
            status: 429,
            ..FixedResponse::with_chunks(vec![b"{\"error\":1}".to_vec()])
        },
        FixedResponse {
            status: 200,
            chunks: vec![text(), Err(transport_error)],
            error: None,
        },
        FixedResponse {
            status: 200,
            chunks: vec![text()],
            error: None,
        },
        FixedResponse {
            status: 0,
            chunks: Vec::new(),
            error: Some(LlmErrorClass::Timeout.into()),
        },
    ];
    for response in cases {
        let (recorded_deltas, played_deltas, calls) = block_on(record_and_play(response));
        assert_eq!(recorded_deltas, played_deltas);
        assert!(
            recorded_deltas.last().is_some_and(Result::is_err),
            "{recorded_deltas:?}"
        );
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].agent, "shop");
        assert_eq!(calls[0].dialect, "plain");
        assert_eq!(calls[0].body_sha256.len(), 64);
    }
}

// G6
#[test]
fn body_of_a_key_rejection_is_not_written() {
    for (status, is_written) in [(401, false), (403, false), (429, true)] {
        let echo = b"{\"error\":\"wrong key: sk-very-secret\"}".to_vec();
        let response = FixedResponse {
            status,
            ..FixedResponse::with_chunks(vec![echo])
        };
        let (recorded_deltas, played_deltas, calls) = block_on(record_and_play(response));
        assert_eq!(recorded_deltas, played_deltas, "{status}");
        let head = calls[0].answer.map(|head| head.status);
        assert_eq!((calls.len(), head), (1, Some(status)));
        assert_eq!(calls[0].ending, CallEnding::End, "{status}");
        assert_eq!(!calls[0].chunks.is_empty(), is_written, "{status}");
    }
}

#[test]
fn dropped_call_is_recorded_as_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let writer = Arc::new(CassetteWriter::open(&path).expect("a deck"));
    let chunks = vec![b"data: one\n\n".to_vec(), b"data: two\n\n".to_vec()];
    let inner = Arc::new(FixedResponse::with_chunks(chunks));
    let recorder = Arc::new(RecordingTransport::new(inner, "plain", Arc::clone(&writer)));
    let remote = remote(recorder);
    block_on(async {
        let mut stream = remote.stream(request("local:m"));
        stream.next().await.expect("a word").expect("one");
        drop(remote.stream(request("local:m")));
    });
    writer.flush();
    let calls = parse("c", &std::fs::read_to_string(&path).expect("a file")).expect("calls");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].ending, CallEnding::Closed);
    assert_eq!(&calls[0].chunks[0].bytes[..], b"data: one\n\n");
    assert_eq!(calls[0].chunks.len(), 1);
}

#[test]
fn concurrent_calls_are_not_interleaved() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let writer = Arc::new(CassetteWriter::open(&path).expect("a deck"));
    let threads: Vec<_> = (0..8u8)
        .map(|n| {
            let writer = Arc::clone(&writer);
            std::thread::spawn(move || {
                let chunks = vec![vec![b'a' + n; 10]; 200];
                let inner = Arc::new(FixedResponse::with_chunks(chunks));
                let recorder = RecordingTransport::new(inner, "plain", writer);
                block_on(async {
                    for _ in 0..10 {
                        let _ = deltas(&remote_of(&recorder), "local:m").await;
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    writer.flush();
    let calls = parse("c", &std::fs::read_to_string(&path).expect("a file")).expect("calls");
    assert_eq!(calls.len(), 80);
    for call in calls {
        let first = &call.chunks[0].bytes;
        assert_eq!(call.chunks.len(), 200);
        assert!(call.chunks.iter().all(|chunk| chunk.bytes == *first));
    }
}

fn remote_of(recorder: &RecordingTransport) -> RemoteProvider {
    remote(Arc::new(RecordingTransport::new(
        Arc::clone(&recorder.inner),
        &recorder.dialect,
        Arc::clone(&recorder.writer),
    )))
}

/// Frames of random text, sometimes with invalid UTF-8, and an end that may be missing.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        8 => "[a-zäö☃ ]{0,12}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    let chunks = proptest::collection::vec(text, 0..12);
    (chunks, any::<bool>(), prop_oneof![Just("\n"), Just("\r\n")]).prop_map(|(chunks, end, eol)| {
        let mut bytes = Vec::new();
        let stop = end.then(|| b"stop".to_vec());
        for text in chunks.into_iter().chain(stop) {
            bytes.extend_from_slice(b"data: ");
            bytes.extend(text);
            bytes.extend_from_slice(eol.as_bytes());
            bytes.extend_from_slice(eol.as_bytes());
        }
        bytes
    })
}

fn split(bytes: &[u8], positions: &[usize]) -> Vec<Vec<u8>> {
    let mut positions: Vec<usize> = positions
        .iter()
        .map(|split| split % (bytes.len() + 1))
        .collect();
    positions.sort_unstable();
    positions.push(bytes.len());
    let mut start = 0;
    let pieces = positions.into_iter().map(|end| {
        let piece = bytes[start..end].to_vec();
        start = end;
        piece
    });
    pieces.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_stream_split_anyhow_plays_back_unchanged(
        bytes in streams(),
        positions in proptest::collection::vec(any::<usize>(), 0..40),
    ) {
        let chunks = split(&bytes, &positions);
        let (recorded_deltas, played_deltas, calls) = block_on(record_and_play(FixedResponse::with_chunks(chunks.clone())));
        prop_assert_eq!(&recorded_deltas, &played_deltas);
        let recorded: Vec<Vec<u8>> = calls[0].chunks.iter().map(|chunk| chunk.bytes.to_vec()).collect();
        // After a decoding error the remaining chunks are not read.
        prop_assert_eq!(&recorded[..], &chunks[..recorded.len()]);
        if recorded_deltas.iter().all(Result::is_ok) {
            prop_assert_eq!(recorded.concat().len(), bytes.len());
        }
    }
}
