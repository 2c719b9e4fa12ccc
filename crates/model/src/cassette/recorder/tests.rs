//! What is recorded is played as it was: the same chunks and, read by a dialect, the same deltas.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use futures_util::stream::iter;
use proptest::prelude::*;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{ContentBlock, Role, StopReason, Usage};

use super::super::{CASSETTE, Player, Tape, read};
use super::*;
use crate::delta::Delta;
use crate::dialect::{Dialect, EncodedRequest, ErrorResponse, Frame, Params, StreamDecoder};
use crate::provider::Provider;
use crate::remote::{Remote, Timeouts};
use crate::request::{Request, Said};

/// A provider whose every answer is this.
struct Fixed {
    status: u16,
    chunks: Vec<Result<Vec<u8>, ModelError>>,
    refuse: Option<ModelError>,
}

impl Fixed {
    fn saying(chunks: Vec<Vec<u8>>) -> Self {
        Self {
            status: 200,
            chunks: chunks.into_iter().map(Ok).collect(),
            refuse: None,
        }
    }
}

impl Transport for Fixed {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let (status, refuse) = (self.status, self.refuse);
        let chunks = self.chunks.clone();
        Box::pin(async move {
            match refuse {
                Some(error) => Err(error),
                None => Ok(Reply {
                    status,
                    retry_after: Some(Duration::from_secs(2)),
                    events: true,
                    chunks: iter(chunks).map(|chunk| chunk.map(Bytes::from)).boxed(),
                }),
            }
        })
    }
}

/// Every frame is a word; `stop` is the end.
struct Plain;
struct PlainDecoder(bool);

impl Dialect for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn headers(&self, _: Option<&str>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn encode(&self, _: &str, _: &str, request: &Request, _: &Params) -> EncodedRequest {
        EncodedRequest {
            path: "/plain".into(),
            body: request.user_text().into(),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(PlainDecoder(false))
    }

    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        match response.retry_after {
            Some(after) => {
                let again = crate::delta::Again::After(after);
                ModelError::new(LlmErrorClass::RateLimited, again)
            }
            None => LlmErrorClass::Provider.into(),
        }
    }
}

impl StreamDecoder for PlainDecoder {
    fn step(&mut self, frame: Frame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if frame.data == "stop" {
            self.0 = true;
            out.push_back(Delta::Stop {
                reason: StopReason::EndTurn,
                usage: Usage::default(),
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
            false => Err(ModelError::passing(LlmErrorClass::Transport)),
        }
    }
}

fn request(model: &str) -> Request {
    Request {
        model: model.into(),
        agent: "shop".into(),
        call: 1,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(Said::new(
            Role::User,
            vec![ContentBlock::text("top secret words")],
        ))],
        tools: [].into(),
    }
}

type Deltas = Vec<Result<Delta, ModelError>>;

async fn deltas(provider: &dyn Provider, model: &str) -> Deltas {
    provider.stream(request(model)).collect().await
}

fn remote(transport: Arc<dyn Transport>) -> Remote {
    let (params, timeouts) = (Params::default(), Timeouts::default());
    Remote::new("local", Arc::new(Plain), transport, params, timeouts, None)
}

fn player(path: &Path) -> Player {
    let text = std::fs::read_to_string(path).expect("a file");
    let tape = Tape::parse("c.jsonl", &text, 0.0).expect("a cassette");
    let dialects = |name: &str| (name == "plain").then(|| Arc::new(Plain) as Arc<dyn Dialect>);
    Player::new(
        BTreeMap::from([("c".to_owned(), tape)]),
        Arc::new(dialects),
        None,
    )
}

/// What was said when it was recorded, when it was played, and the calls on the cassette.
async fn both(fixed: Fixed) -> (Deltas, Deltas, Vec<Call>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let deck = Arc::new(Deck::open(&path).expect("a deck"));
    let recorder = Recorder::new(Arc::new(fixed), "plain", Arc::clone(&deck));
    let live = deltas(&remote(Arc::new(recorder)), "local:m").await;
    deck.flush();
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(!text.contains("top secret"), "{text}");
    let calls = read("c", &text).expect("a cassette");
    let played = deltas(&player(&path), &format!("{CASSETTE}:c")).await;
    (live, played, calls)
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
fn a_refusal_a_break_and_silence_are_played_as_they_were() {
    let class = LlmErrorClass::Transport;
    let broken = ModelError::passing(class);
    let word = || Ok(b"data: one\n\n".to_vec());
    let cases = [
        Fixed {
            status: 429,
            ..Fixed::saying(vec![b"{\"error\":1}".to_vec()])
        },
        Fixed {
            status: 200,
            chunks: vec![word(), Err(broken)],
            refuse: None,
        },
        Fixed {
            status: 200,
            chunks: vec![word()],
            refuse: None,
        },
        Fixed {
            status: 0,
            chunks: Vec::new(),
            refuse: Some(LlmErrorClass::Timeout.into()),
        },
    ];
    for fixed in cases {
        let (live, played, calls) = block_on(both(fixed));
        assert_eq!(live, played);
        assert!(live.last().is_some_and(Result::is_err), "{live:?}");
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].agent, "shop");
        assert_eq!(calls[0].dialect, "plain");
        assert_eq!(calls[0].body_sha256.len(), 64);
    }
}

#[test]
fn g6_a_body_that_refuses_the_key_is_not_written() {
    for (status, written) in [(401, false), (403, false), (429, true)] {
        let echo = b"{\"error\":\"wrong key: sk-very-secret\"}".to_vec();
        let fixed = Fixed {
            status,
            ..Fixed::saying(vec![echo])
        };
        let (live, played, calls) = block_on(both(fixed));
        assert_eq!(live, played, "{status}");
        let head = calls[0].answer.map(|head| head.status);
        assert_eq!((calls.len(), head), (1, Some(status)));
        assert_eq!(calls[0].ending, Ending::End, "{status}");
        assert_eq!(!calls[0].chunks.is_empty(), written, "{status}");
    }
}

#[test]
fn what_is_dropped_in_the_middle_is_closed_and_what_was_never_asked_is_not_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let deck = Arc::new(Deck::open(&path).expect("a deck"));
    let words = vec![b"data: one\n\n".to_vec(), b"data: two\n\n".to_vec()];
    let inner = Arc::new(Fixed::saying(words));
    let recorder = Arc::new(Recorder::new(inner, "plain", Arc::clone(&deck)));
    let remote = remote(recorder);
    block_on(async {
        let mut stream = remote.stream(request("local:m"));
        stream.next().await.expect("a word").expect("one");
        drop(remote.stream(request("local:m")));
    });
    deck.flush();
    let calls = read("c", &std::fs::read_to_string(&path).expect("a file")).expect("calls");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].ending, Ending::Closed);
    assert_eq!(&calls[0].chunks[0].bytes[..], b"data: one\n\n");
    assert_eq!(calls[0].chunks.len(), 1);
}

#[test]
fn calls_at_once_do_not_mix() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let deck = Arc::new(Deck::open(&path).expect("a deck"));
    let threads: Vec<_> = (0..8u8)
        .map(|n| {
            let deck = Arc::clone(&deck);
            std::thread::spawn(move || {
                let chunks = vec![vec![b'a' + n; 10]; 200];
                let inner = Arc::new(Fixed::saying(chunks));
                let recorder = Recorder::new(inner, "plain", deck);
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
    deck.flush();
    let calls = read("c", &std::fs::read_to_string(&path).expect("a file")).expect("calls");
    assert_eq!(calls.len(), 80);
    for call in calls {
        let first = &call.chunks[0].bytes;
        assert_eq!(call.chunks.len(), 200);
        assert!(call.chunks.iter().all(|chunk| chunk.bytes == *first));
    }
}

fn remote_of(recorder: &Recorder) -> Remote {
    remote(Arc::new(Recorder::new(
        Arc::clone(&recorder.inner),
        &recorder.dialect,
        Arc::clone(&recorder.deck),
    )))
}

/// Frames of any words, now and then with bytes that are no text, and an end that may be missing.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => "[a-zäö☃ ]{0,12}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    let words = proptest::collection::vec(word, 0..12);
    (words, any::<bool>(), prop_oneof![Just("\n"), Just("\r\n")]).prop_map(|(words, end, eol)| {
        let mut bytes = Vec::new();
        let stop = end.then(|| b"stop".to_vec());
        for word in words.into_iter().chain(stop) {
            bytes.extend_from_slice(b"data: ");
            bytes.extend(word);
            bytes.extend_from_slice(eol.as_bytes());
            bytes.extend_from_slice(eol.as_bytes());
        }
        bytes
    })
}

fn cut(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(bytes.len());
    let mut from = 0;
    let pieces = cuts.into_iter().map(|to| {
        let piece = bytes[from..to].to_vec();
        from = to;
        piece
    });
    pieces.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_stream_in_any_pieces_plays_as_it_came(
        bytes in streams(),
        cuts in proptest::collection::vec(any::<usize>(), 0..40),
    ) {
        let chunks = cut(&bytes, &cuts);
        let (live, played, calls) = block_on(both(Fixed::saying(chunks.clone())));
        prop_assert_eq!(&live, &played);
        let recorded: Vec<Vec<u8>> = calls[0].chunks.iter().map(|chunk| chunk.bytes.to_vec()).collect();
        // Where the reader gave up, the rest was never asked for.
        prop_assert_eq!(&recorded[..], &chunks[..recorded.len()]);
        if live.iter().all(Result::is_ok) {
            prop_assert_eq!(recorded.concat().len(), bytes.len());
        }
    }
}
