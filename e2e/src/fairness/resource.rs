//! The resources that owners share, and what the greedy owner has stored before it asks for more.

use std::io;

use serde_json::json;
use tokio::task::JoinSet;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

use super::client::{LoadClient, session_id};

/// Connections that the servers of the campaign accept: few enough that a client can take all of
/// them within seconds.
pub const CONNECTIONS_MAX: usize = 2_000;
/// Sessions in the list of the greedy owner: one page at its maximum.
const LISTED: usize = 200;
/// Metadata of a listed session in bytes, largest first: the server takes the first that it allows.
const METADATA_BYTES: [usize; 3] = [1_000_000, 16_000, 1_000];
/// Turns that emit 20,000 events each into the large session.
const BURSTS: usize = 10;
/// Turns of the session with large events, and the size of their messages in bytes, largest first.
const LARGE_TURNS: usize = 300;
const LARGE_BYTES: [usize; 2] = [250_000, 15_000];

/// A resource of the server that owners share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedResource {
    /// Pages of sessions with as much metadata as the server stores.
    Lists,
    /// Reads of events by types that do not occur in a large session.
    Scans,
    /// Readers that replay large events, most of them without reading.
    Replays,
    /// Turns in flight that stream slowly and have no watcher.
    Turns,
    /// Programs that run longer than a phase.
    Programs,
    /// Attach tokens that nobody redeems.
    Tokens,
    /// Idle, half-open and subscribed connections.
    Connections,
}

impl SharedResource {
    /// All resources in the order of the campaign.
    pub const ALL: [Self; 7] = [
        Self::Lists,
        Self::Scans,
        Self::Replays,
        Self::Turns,
        Self::Programs,
        Self::Tokens,
        Self::Connections,
    ];

    /// The name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lists => "lists",
            Self::Scans => "scans",
            Self::Replays => "replays",
            Self::Turns => "turns",
            Self::Programs => "programs",
            Self::Tokens => "tokens",
            Self::Connections => "connections",
        }
    }

    /// The resource of a name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Stores what the greedy owner needs, and returns the session that the load reads.
    pub async fn fill(self, greedy: &LoadClient) -> io::Result<String> {
        match self {
            Self::Lists => fill_list(greedy).await?,
            Self::Scans => {
                let session = greedy.create_session().await?;
                for _ in 0..BURSTS {
                    finish_turn(greedy, &session, "burst").await?;
                }
                return Ok(session);
            }
            Self::Replays => return fill_large(greedy).await,
            Self::Turns | Self::Programs | Self::Tokens | Self::Connections => {}
        }
        greedy.create_session().await
    }
}

async fn fill_list(greedy: &LoadClient) -> io::Result<()> {
    let mut bytes = 0;
    for size in METADATA_BYTES {
        let reply = create_with(greedy.clone(), size).await?;
        if reply {
            bytes = size;
            break;
        }
    }
    let mut tasks = JoinSet::new();
    for _ in 0..LISTED {
        if tasks.len() >= 8 {
            tasks.join_next().await;
        }
        tasks.spawn(create_with(greedy.clone(), bytes));
    }
    tasks.join_all().await;
    Ok(())
}

async fn create_with(greedy: LoadClient, bytes: usize) -> io::Result<bool> {
    let body = json!({"metadata": {"note": "x".repeat(bytes)}}).to_string();
    let reply = greedy.request("POST", "/sessions", Some(&body)).await?;
    Ok(reply.status == 201)
}

/// A session with large events: each turn's message is in the event of its start.
async fn fill_large(greedy: &LoadClient) -> io::Result<String> {
    let session = greedy.create_session().await?;
    for _ in 0..LARGE_TURNS {
        let mut status = 0;
        for bytes in LARGE_BYTES {
            let reply = greedy.submit(&session, &"y".repeat(bytes)).await?;
            status = reply.status;
            if let (202, Some(turn)) = (status, reply.text("turn_id")) {
                wait_for_turn(greedy, turn).await?;
                break;
            }
        }
        if status != 202 {
            return Err(io::Error::other(format!("a large turn got {status}")));
        }
    }
    Ok(session)
}

async fn finish_turn(greedy: &LoadClient, session: &str, message: &str) -> io::Result<()> {
    let reply = greedy.submit(session, message).await?;
    match (reply.status, reply.text("turn_id")) {
        (202, Some(turn)) => wait_for_turn(greedy, turn).await,
        _ => Err(io::Error::other(format!("no turn: {}", reply.body))),
    }
}

async fn wait_for_turn(client: &LoadClient, turn: &str) -> io::Result<()> {
    loop {
        let reply = client
            .request("GET", &format!("/turns/{turn}"), None)
            .await?;
        if matches!(reply.text("state"), Some("completed" | "cancelled")) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Creates the session of a quiet owner, with a finished turn.
pub async fn quiet_session(owner: &LoadClient) -> io::Result<String> {
    let reply = owner.request("POST", "/sessions", Some("{}")).await?;
    let session = session_id(&reply)?;
    finish_turn(owner, &session, "hello").await?;
    Ok(session)
}

/// The options of both servers: a pack with programs whose model follows a script.
pub fn options() -> ServerOptions {
    let pack = TestPack::default()
        .put("pack.yaml", PACK)
        .put("orchestrator.yaml", ORCHESTRATOR)
        .put("tools.yaml", TOOLS)
        .put("prompts/persona.md", "You answer.\n")
        .script(&script());
    ServerOptions::pack(pack)
        .set("http", "connections_max", CONNECTIONS_MAX)
        // No token expires within a phase, so that a greedy owner can collect them.
        .set("stream", "token_ttl_ms", 600_000)
        .set("log", "filter", "error")
}

fn script() -> ModelScript {
    let nap = || ScriptStep::tool("nap", json!({"seconds": 120}));
    ModelScript::new()
        .on(
            "^burst",
            [
                ScriptStep::tool("burst", json!({"count": 10_000})),
                ScriptStep::text("Done."),
            ],
        )
        .on(
            "^check",
            [
                ScriptStep::tool("check", json!({})),
                ScriptStep::text("Checked."),
            ],
        )
        // Eight programs at once.
        .on("^nap", (0..8).map(|_| nap()))
        // Ten kB a second for two minutes, longer than a phase.
        .on(
            "^long",
            [ScriptStep::slow(&"word ".repeat(410), 2_048, 200).repeat(600)],
        )
        .on("", [ScriptStep::slow("A short answer in words.", 6, 2)])
}

const PACK: &str = "\
name: fairness
version: '1.0.0'
default_locale: en
models: {default: 'scripted:test'}
";

const ORCHESTRATOR: &str = "\
id: orchestrator
version: '1'
kind: orchestrator
description: Speaks with the person.
model: default
prompt_blocks: [persona]
tools: [burst, check, nap]
history: {max_messages: 4, max_tokens: 2000}
";

const TOOLS: &str = r#"
tools:
  - {name: burst, connector: direct, function: burst, description: Emits events.}
  - name: check
    connector: process
    description: Runs a program that ends at once.
    command: ["true"]
    stdin: none
    input_schema: {type: object}
    timeout_ms: 60000
  - name: nap
    connector: process
    description: Waits.
    command: [sleep, "{seconds}"]
    stdin: none
    input_schema: {type: object, properties: {seconds: {type: integer}}, required: [seconds]}
    timeout_ms: 300000
"#;
