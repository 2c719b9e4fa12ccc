//! The chat stream with real readers: Chromium's `EventSource`, the npm package of the same name,
//! `httpx-sse` and `curl -N` all give the result of a strict parser, live and replayed, in small
//! pieces and across cuts, and stop at the end of the turn.

mod proxy;
mod readers;
mod readings;
mod reference;

use serde_json::{Value, json};
use turnwire_event::ResponseId;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::{ServerOptions, TestServer};

use proxy::{Manner, Proxy};
use readers::Kind;
use readings::{Readings, agree};
use reference::{Answer, Event};

/// How long a reader waits before it comes back, and at most twice that: short, and always a
/// number of two digits, so that every stream begins with a line of the same length.
const RETRY_MS: u32 = 30;

/// Cuts in the first line, in ids, in data; each counted from the start of a stream.
const CUTS: [usize; 8] = [3, 24, 150, 700, 701, 1_333, 40, 2_048];

async fn server(script: ModelScript) -> TestServer {
    TestServer::start(ServerOptions::script(script).set("stream", "retry_ms", RETRY_MS)).await
}

/// Submits a turn that does not mind who leaves.
async fn ask(server: &TestServer, message: &str) -> Answer {
    let body = json!({"message": message, "on_disconnect": "continue"});
    let answer = Answer::post(server.addr(), &body.to_string()).await;
    assert_eq!(answer.status, 200);
    answer
}

/// Behind which bytes of a stream's body a block ends.
fn ends_of_blocks(body: &[u8]) -> Vec<usize> {
    let pairs = body.windows(2).enumerate();
    let ends = pairs.filter(|(_, pair)| *pair == b"\n\n");
    ends.map(|(at, _)| at + 2).collect()
}

/// Reads a completed turn that is cut between two frames of one event: the first two are of its
/// start, and the last two before the sentinel of its end.
async fn cut_within_events(
    readings: &mut Readings,
    server: &TestServer,
    response: ResponseId,
    wanted: &[Event],
) {
    let body = Answer::get(server.addr(), response).await.bytes().await;
    let ends = ends_of_blocks(&body);
    for frame in [0, ends.len() - 3] {
        let event = |at: usize| wanted[at].0.split_once('-').expect("a frame's number").0;
        assert_eq!(event(frame), event(frame + 1), "two frames of one event");
        let manner = Manner {
            cuts: vec![ends[frame]],
            piece: None,
        };
        let reading = readings.behind(server, &manner).await;
        reading.reads(response, wanted).await;
    }
}

fn names(events: &[Event]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|event| event.1.as_str()).collect();
    names.dedup();
    names
}

// W-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sse_client_reads_the_same_turn() {
    let script = ModelScript::new().on(
        "",
        [
            ScriptStep::thinking("What is asked for? Something long.", "seal"),
            ScriptStep::slow("First some words, one after the other. ", 2, 60),
            ScriptStep::tool(tool::ECHO, json!({"text": "a"})),
            ScriptStep::slow("Then what the tool says, slowly too.", 2, 60),
        ],
    );
    let server = server(script).await;
    let mut readings = Readings::start().await;
    let posted = ask(&server, "go").await;
    let response = posted.response();
    let reference = tokio::spawn(posted.events());
    // Each is cut while the turn runs.
    let manner = Manner {
        cuts: CUTS.to_vec(),
        piece: Some(61),
    };
    let reading = readings.behind(&server, &manner).await;
    let (lists, wanted) = reading.read(response, async |_| reference.await).await;
    let wanted = wanted.expect("the reference");
    let kinds = [
        ["response_id", "episode", "thinking", "text", "tool_call"],
        ["tool_completed", "text", "usage", "completed", "message"],
    ];
    assert_eq!(names(&wanted), kinds.concat());
    agree(&lists, &wanted);

    // And again when it is over, whole.
    let again = Answer::get(server.addr(), response).await.events().await;
    assert_eq!(again, wanted);
    let reading = readings.behind(&server, &Manner::default()).await;
    reading.reads(response, &wanted).await;

    // And cut at the places where a parser can go wrong: in the middle of a block's lines, before
    // its blank line, behind it.
    let blocks = ends_of_blocks(&Answer::get(server.addr(), response).await.bytes().await);
    for cut in [blocks[3] - 1, blocks[3], blocks[3] + 1, blocks[3] + 30] {
        let manner = Manner {
            cuts: vec![cut],
            piece: None,
        };
        let reading = readings.behind(&server, &manner).await;
        reading.reads(response, &wanted).await;
    }
    cut_within_events(&mut readings, &server, response, &wanted).await;

    // Cut between the terminal and the sentinel: the terminal is the end.
    let manner = Manner {
        cuts: vec![blocks[blocks.len() - 2]],
        piece: None,
    };
    let reading = readings.behind(&server, &manner).await;
    let (lists, ()) = reading.read(response, async |_| ()).await;
    agree(&lists, &wanted[..wanted.len() - 1]);
    for (_, proxy) in &readings.proxies[readings.proxies.len() - Kind::ALL.len()..] {
        let last = &wanted[wanted.len() - 2].0;
        assert_eq!(proxy.requests()[1].last_event_id.as_ref(), Some(last));
        assert_eq!(proxy.requests()[1].status, 204);
    }
    let reading = readings.behind(&server, &Manner::default()).await;
    reading.reads(response, &wanted).await;
    readings.nobody_came_back();
}

// W-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sse_client_reads_the_same_from_store() {
    let script = ModelScript::new().on(
        "",
        [
            ScriptStep::thinking("What is asked for? Something short.", "seal"),
            ScriptStep::text("Some words. "),
            ScriptStep::tool(tool::ECHO, json!({"text": "a"})),
            ScriptStep::text("And a few more."),
        ],
    );
    let mut server = server(script).await;
    let mut readings = Readings::start().await;
    let posted = ask(&server, "go").await;
    let response = posted.response();
    let events = posted.events().await;
    // Nothing of it is in memory any more.
    server.restart().await;
    let wanted = Answer::get(server.addr(), response).await.events().await;
    assert_eq!(names(&wanted), names(&events));
    for (name, field) in [("text", "chunk"), ("thinking", "content")] {
        let same = said(&wanted, name, field).concat() == said(&events, name, field).concat();
        assert!(same, "{name} is whole");
    }
    let manner = Manner {
        cuts: CUTS[..4].to_vec(),
        piece: Some(61),
    };
    for manner in [Manner::default(), manner] {
        let reading = readings.behind(&server, &manner).await;
        reading.reads(response, &wanted).await;
    }
    cut_within_events(&mut readings, &server, response, &wanted).await;
    readings.nobody_came_back();
}

// W-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sse_client_reads_the_same_cancel() {
    let words = "Words that go on and on until somebody has heard enough of them. ";
    let server =
        server(ModelScript::new().on("", [ScriptStep::slow(words, 3, 20).repeat(1_000)])).await;
    let mut readings = Readings::start().await;
    let posted = ask(&server, "go").await;
    let response = posted.response();
    let reference = tokio::spawn(posted.events());
    let manner = Manner {
        cuts: CUTS.to_vec(),
        piece: Some(13),
    };
    let reading = readings.behind(&server, &manner).await;
    // Cancelled when each of them reads live, after all its cuts.
    let cancel = async |proxies: &[(Kind, Proxy)]| {
        for (_, proxy) in proxies {
            proxy.passed(CUTS.iter().sum::<usize>() + 1_000).await;
        }
        let api = server.api();
        let answer = api.cancel(response.into()).await.expect("an answer");
        assert!(answer.status < 300, "{}", answer.body);
        reference.await.expect("the reference")
    };
    let (lists, wanted) = reading.read(response, cancel).await;
    let kinds = [
        "response_id",
        "episode",
        "thinking",
        "text",
        "cancelled",
        "message",
    ];
    assert_eq!(names(&wanted), kinds);
    agree(&lists, &wanted);

    let again = Answer::get(server.addr(), response).await.events().await;
    assert_eq!(again, wanted);
    for manner in [Manner::default(), manner] {
        let reading = readings.behind(&server, &manner).await;
        reading.reads(response, &wanted).await;
    }
    readings.nobody_came_back();
}

/// Every text that could end a line or a block, or be taken for a field, by some reader.
fn odd_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "\u{feff}first and \u{feff}later",
        "\rcarriage\rreturns\r\r",
        "\nline\nfeeds\n\n",
        "\r\nboth\r\n\r\n",
        "\0nul\0\0",
        "\u{feff}",
        "\u{2028}lines\u{2028}and\u{2029}paragraphs\u{2029}",
        "\u{85}next\u{85}line\u{b}tab\u{c}page\u{1c}\u{1d}\u{1e}\u{1f}\u{7f}",
        "\n\ndata: forged\n\n",
        "\r\rid: forged\revent: forged\rdata: forged\r\r",
        "\n\nevent: forged\ndata: forged\nretry: 1\nid:\n\n",
        "\n: comment\n\n:\n",
        "data: [DONE]\n\n",
        "\\ud800 \\n \\u0000 \"quoted\" \\\\",
        "👩‍👩‍👧‍👦 🏳️‍🌈 e\u{301} \u{10ffff}\u{fffd}\u{ffff}\u{fffe}",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("\u{1f600}".repeat(50));
    texts.push((0..=0x9f_u8).map(char::from).collect());
    texts
}

/// All that frames of one kind say.
fn said(events: &[Event], name: &str, field: &str) -> Vec<String> {
    let frames = events.iter().filter(|event| event.1 == name);
    let texts = frames.filter_map(|(_, _, data)| {
        let value: Value = serde_json::from_str(data).expect("JSON");
        value[field].as_str().map(str::to_owned)
    });
    texts.collect()
}

// W-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_breaks_the_stream() {
    let texts = odd_texts();
    let all = texts.concat();
    let steps = [
        ScriptStep::thinking("{{user}}", "seal"),
        ScriptStep::slow("{{user}}", 100, 0),
        ScriptStep::slow("{{user}}", 1, 0),
    ];
    let server = server(ModelScript::new().on("", steps)).await;
    let mut readings = Readings::start().await;
    let posted = ask(&server, &all).await;
    let response = posted.response();
    let wanted = posted.events().await;
    let deltas = said(&wanted, "text", "chunk");
    assert!(deltas.concat() == all.repeat(2), "what was said");
    assert!(said(&wanted, "thinking", "content").concat() == all);
    let begins = |with: &str| deltas.iter().any(|text| text.starts_with(with));
    assert!(begins("\u{feff}first") && deltas.iter().any(|text| text == "\u{feff}"));
    for piece in [None, Some(1), Some(7)] {
        let manner = Manner {
            cuts: if piece == Some(7) {
                CUTS.to_vec()
            } else {
                Vec::new()
            },
            piece,
        };
        let reading = readings.behind(&server, &manner).await;
        reading.reads(response, &wanted).await;
    }
    readings.nobody_came_back();
}

// W-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn very_long_text_is_read_whole() {
    let long = "0123456789".repeat(30_000);
    let wide = "\u{1f600}\n".repeat(60_000);
    let steps = [
        ScriptStep::slow(&long, long.len(), 0),
        ScriptStep::text("between"),
        ScriptStep::slow(&wide, wide.len(), 0),
    ];
    let server = server(ModelScript::new().on("", steps)).await;
    let mut readings = Readings::start().await;
    let posted = ask(&server, "go").await;
    let response = posted.response();
    let wanted = posted.events().await;
    let deltas = said(&wanted, "text", "chunk");
    assert!(deltas.contains(&long), "one word, one frame");
    assert!(deltas.concat() == format!("{long}between{wide}"));
    let manner = Manner {
        cuts: vec![100_001, 300_000, 7, 400_003, 301_000],
        piece: Some(4_093),
    };
    for manner in [Manner::default(), manner] {
        let reading = readings.behind(&server, &manner).await;
        reading.reads(response, &wanted).await;
    }
    readings.nobody_came_back();
}

#[tokio::test]
async fn lone_surrogate_is_refused_before_the_stream() {
    let server = server(ModelScript::new().on("", [ScriptStep::text("{{user}}")])).await;
    for half in ["\\ud800", "\\udc00", "a\\ud83d b"] {
        let answer = Answer::post(server.addr(), &format!("{{\"message\":\"{half}\"}}")).await;
        assert_eq!(answer.status, 400, "{half}");
    }
    let valid = Answer::post(server.addr(), "{\"message\":\"\\ud83d\\ude00\"}").await;
    let events = valid.events().await;
    assert_eq!(said(&events, "text", "chunk").concat(), "\u{1f600}");
}
