//! Versions 0.5 and 0.4 of the chat wire from one log, compared field by field, and read by a
//! strict client of version 0.4 (S1-007, S1-137, D-22).
//!
//! A turn is bound to one version, so the other is projected from what was seen of the same turn.

use serde_json::{Map, Value, json};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Event, ResponseId};
use turnwire_testkit::chat::{Block, ChatStream, ChatSubmit, Said};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::SubscribeOptions;
use turnwire_wire::pc3::{self, WireVersion};

const WORDS: &str = "Rivers do not hurry – 水は急がない – and arrive. \u{1f30a} ";

fn script() -> ModelScript {
    ModelScript::new()
        .on("^plain", [ScriptStep::slow(WORDS, 6, 2)])
        .on(
            "^thinking",
            [
                ScriptStep::thinking("Let me see.\nOnce more.", "c2VhbA=="),
                ScriptStep::text("First words. "),
                ScriptStep::thinking("Is that so?", "c2VhbA=="),
                ScriptStep::text("And last ones."),
            ],
        )
        .on(
            "^tool",
            [
                ScriptStep::text("I will echo. "),
                ScriptStep::tool(tool::ECHO, json!({"text": "x"})),
                ScriptStep::tool(tool::FAIL, json!({})),
                ScriptStep::text("Done."),
            ],
        )
        .on(
            "^failed late",
            [ScriptStep::text(WORDS), ScriptStep::error("internal")],
        )
        .on("^failed early", [ScriptStep::error("rate_limited")])
        .on("^cancelled", [ScriptStep::slow(WORDS, 3, 20).repeat(40)])
}

/// What a turn was on the wire, and what happened in it.
struct Capture {
    version: WireVersion,
    /// As it came, without the `retry:` line.
    bytes: String,
    frames: Vec<Block>,
    events: Vec<Event>,
}

/// Has a turn over the chat stream in one version, and sees its events over the other wire.
async fn capture(fixture: &ServerFixture, says: &str, version: WireVersion) -> Capture {
    let name = format!("{says} {version}");
    let mut watcher = fixture.watch(&name, SubscribeOptions::live()).await;
    let question = ChatSubmit::new(says)
        .session(fixture.session)
        .version(version.as_str());
    let mut stream = ChatStream::submit(&fixture.api, &name, &question)
        .await
        .expect("a stream");
    let turn = stream.turn();
    let mut frames = Vec::new();
    if says == "cancelled" {
        frames = stream.until("text").await.expect("words");
        let path = format!("/turns/{}/cancel", ResponseId::from(turn));
        let answer = fixture.api.post(&path, json!({})).await.expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.body);
    }
    frames.extend(stream.read_to_end().await.expect("a whole stream"));
    let bytes = frames.iter().map(Block::frame_text);
    let bytes = bytes.chain([std::str::from_utf8(pc3::SENTINEL).expect("text")]);
    Capture {
        version,
        bytes: bytes.collect(),
        frames,
        events: watcher.turn(turn).await.expect("the turn's events"),
    }
}

/// The turn as it would have been in a version.
fn projected(events: &[Event], version: WireVersion) -> String {
    let mut bytes = Vec::new();
    for event in events {
        pc3::project(event, version, &mut bytes);
    }
    String::from_utf8(bytes).expect("text")
}

fn frames(text: &str) -> Vec<Block> {
    let blocks = text.split_inclusive("\n\n");
    let blocks = blocks.map(|text| Block::read(text, false).expect("a block"));
    blocks.filter(|b| b.said != Said::Done).collect()
}

fn fields(frame: &Block) -> &Map<String, Value> {
    match &frame.said {
        Said::Frame(_, _, data) => data,
        Said::Pause | Said::Done => panic!("no frame: {}", frame.text),
    }
}

/// A client of version 0.4 that takes nothing it does not know.
#[derive(Debug, Default, PartialEq)]
struct OldClient {
    response_id: String,
    text: String,
    thoughts: Vec<String>,
    tools: Vec<(String, bool)>,
    usage: Option<u64>,
    /// `completed`, or the code of the error: to this client every error is the end.
    end: Option<String>,
}

impl OldClient {
    fn read(frames: &[Block]) -> Result<Self, String> {
        let mut client = Self::default();
        for frame in frames {
            client
                .frame(frame)
                .map_err(|why| format!("{why}: {}", frame.text))?;
        }
        client
            .end
            .is_some()
            .then_some(client)
            .ok_or("no end".into())
    }

    fn frame(&mut self, frame: &Block) -> Result<(), String> {
        if self.end.is_some() {
            return Err("a frame after the end".into());
        }
        let text = |name: &str| {
            let value = frame.field(name).as_str().map(str::to_owned);
            value.ok_or(format!("{name} is no text"))
        };
        for name in ["event_type", "version", "timestamp", "response_id"] {
            text(name)?;
        }
        match frame.event() {
            "response_id" => self.response_id = text("response_id")?,
            "episode" => drop(text("episode_id")?),
            "thinking" if text("role")? != "reasoning" => return Err("another role".into()),
            "thinking" if frame.field("content").is_null() => {}
            "thinking" => join(&mut self.thoughts, "before", &text("content")?),
            "text" | "reasoning" if text("type")? != "chunk" => return Err("another type".into()),
            "text" => self.text += &text("chunk")?,
            "reasoning" => join(&mut self.thoughts, "after", &text("chunk")?),
            "tool_call" | "tool_completed" => {
                let tool = frame.field("tool_call");
                let are_strings = ["id", "name", "type"].map(|name| tool[name].is_string());
                if are_strings != [true; 3] {
                    return Err("a tool without a name".into());
                }
                let name = tool["name"].as_str().unwrap_or_default().to_owned();
                self.tools.push((name, frame.event() == "tool_completed"));
            }
            "usage" => {
                let names = ["input", "output", "reasoning", "cached", "total"];
                for name in names {
                    let tokens = frame.field(&format!("{name}_tokens")).as_u64();
                    self.usage = Some(tokens.ok_or(format!("{name}_tokens is no number"))?);
                }
            }
            "completed" => self.end = Some("completed".into()),
            "error" => {
                let code = frame.field("error")["code"].as_str();
                self.end = Some(code.ok_or("an error without a code")?.into());
            }
            other => return Err(format!("{other} is not known")),
        }
        Ok(())
    }
}

/// Adds to the thoughts of one kind, which come in pieces.
fn join(thoughts: &mut Vec<String>, kind: &str, text: &str) {
    match thoughts.last_mut() {
        Some(last) if last.starts_with(kind) => last.push_str(text),
        _ => thoughts.push(format!("{kind}: {text}")),
    }
}

/// One event in both versions: the same fields, of the same kinds, with the same values.
fn compare(old: &Block, new: &Block) {
    assert_eq!(old.id(), new.id());
    let (a, b) = (fields(old), fields(new));
    let (is, was) = (new.event(), old.event());
    let code = |frame: &Block| frame.field("error")["code"].clone();
    if is == "cancelled" {
        // S1-137: a cancel is an error with its code, and an error is the end.
        assert_eq!((was, code(old)), ("error", code(new)));
        assert_eq!(old.field("is_final"), true);
    } else {
        assert_eq!(is, was);
        let names = |data: &Map<String, Value>| data.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(a), names(b), "{is}");
    }
    for (name, value) in a {
        match name.as_str() {
            "version" => assert_eq!((value, &b[name]), (&json!("0.4"), &json!("0.5"))),
            "event_type" | "is_final" if is == "cancelled" => {}
            _ => assert_eq!(Some(value), b.get(name), "{name} of {is}"),
        }
    }
}

/// Has the turn in either version, projects the other, compares, and gives what old clients see.
async fn both(says: &str) -> OldClient {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let mut seen = Vec::new();
    for version in WireVersion::ALL {
        let captured = capture(&fixture, says, version).await;
        assert_eq!(captured.version, version);
        assert_eq!(captured.bytes, projected(&captured.events, version));
        assert!(captured.bytes.ends_with("data: [DONE]\n\n"));
        let old = frames(&projected(&captured.events, WireVersion::V04));
        let new = frames(&projected(&captured.events, WireVersion::V05));
        assert_eq!(old.len(), new.len());
        assert!(!captured.frames.is_empty());
        for (old, new) in old.iter().zip(&new) {
            compare(old, new);
        }
        let client = OldClient::read(&old).unwrap_or_else(|why| panic!("{says}: {why}"));
        // S1-115: what it does not know of 0.5 is the cancel alone.
        match OldClient::read(&new) {
            Ok(same) => assert_eq!(same, client),
            Err(why) => assert!(says == "cancelled" && why.starts_with("cancelled"), "{why}"),
        }
        // Tools run side by side: which ends first is chance.
        let mut client = client;
        client.tools.sort();
        seen.push(client);
    }
    fixture.check_history().await;
    let mut second = seen.pop().expect("two turns");
    let first = seen.pop().expect("two turns");
    assert_ne!(first.response_id, second.response_id);
    // The second turn has more to read; and how far a cancelled one came is chance.
    second.response_id.clone_from(&first.response_id);
    second.usage = first.usage.filter(|_| second.usage.is_some());
    if says == "cancelled" {
        second.text.clone_from(&first.text);
    }
    assert_eq!(first, second, "both versions tell the same");
    first
}

// S1-007, S1-141
#[tokio::test]
async fn plain_turn_is_equal_in_both_versions() {
    let client = both("plain").await;
    assert_eq!(client.text, WORDS);
    assert_eq!(client.end.as_deref(), Some("completed"));
    assert!(client.usage.is_some());
}

// S1-007
#[tokio::test]
async fn thinking_is_equal_in_both_versions() {
    let client = both("thinking").await;
    assert_eq!(client.text, "First words. And last ones.");
    let thoughts = ["before: Let me see.\nOnce more.", "after: Is that so?"];
    assert_eq!(client.thoughts, thoughts);
    assert_eq!(client.end.as_deref(), Some("completed"));
}

// S1-007
#[tokio::test]
async fn tools_are_equal_in_both_versions() {
    let client = both("tool").await;
    assert_eq!(client.text, "I will echo. Done.");
    let all = [
        ("echo", false),
        ("echo", true),
        ("fail", false),
        ("fail", true),
    ];
    assert_eq!(client.tools, all.map(|(name, end)| (name.to_owned(), end)));
}

// D-22, C-08
#[tokio::test]
async fn failed_turn_ends_with_its_code_in_both_versions() {
    let late = both("failed late").await;
    assert_eq!(late.text, WORDS);
    assert_eq!(late.end.as_deref(), Some("INTERNAL_ERROR"));
    let early = both("failed early").await;
    assert_eq!(early.text, "");
    assert_eq!(early.end.as_deref(), Some("RATE_LIMIT_ERROR"));
}

// S1-137, D-03
#[tokio::test]
async fn cancelled_turn_is_an_error_for_v04_clients() {
    let client = both("cancelled").await;
    assert_eq!(client.end.as_deref(), Some("REQUEST_CANCELLED"));
    assert_eq!(client.usage, None, "only closures follow a cancel");
    assert!(!client.text.is_empty());
}
