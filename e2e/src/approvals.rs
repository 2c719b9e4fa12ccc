//! Fixture of the approval tests: a server with tools that need approval and write a file when they
//! run, and helpers for approval requests and decisions.

use serde_json::{Value, json};
use turnwire_event::TurnId;
use turnwire_testkit::api::{ApiResponse, NoResponse};
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage};
use turnwire_testkit::server::ServerPack;

use crate::models::ProviderFixture;

/// A server whose orchestrator has the tools `note` and `doze`, which need approval, and others
/// that do not.
#[derive(Debug)]
pub struct ApprovalFixture {
    /// The server and its fake provider.
    pub setup: ProviderFixture,
    notes: tempfile::TempDir,
}

const TOOLS: &str = r#"
  - name: note
    connector: process
    description: Writes a note down.
    approval: required
    command: [tee, "-a", "DIR/notes"]
    input_schema: {type: object, properties: {note: {type: string}}, required: [note], additionalProperties: false}
    timeout_ms: 20000
  - name: doze
    connector: process
    description: Waits.
    approval: required
    command: [sleep, "100"]
    stdin: none
    input_schema: {type: object, additionalProperties: false}
    timeout_ms: 110000
"#;

impl ApprovalFixture {
    /// Starts the server with a provider of this format.
    pub async fn new(dialect: Dialect) -> Self {
        let notes = tempfile::tempdir().expect("a folder");
        let tools = TOOLS.replace("DIR", &notes.path().display().to_string());
        let setup = ProviderFixture::with(
            dialect,
            |entry| entry,
            |mut options| {
                if let ServerPack::Pack(pack) = &mut options.pack {
                    *pack = pack
                        .clone()
                        .change("tools.yaml", "tools:\n", &format!("tools:\n{tools}"))
                        .change("orchestrator.yaml", "tools: [", "tools: [note, doze, ");
                }
                options
            },
        );
        Self {
            setup: setup.await,
            notes,
        }
    }

    /// The notes written so far, one entry per run of the tool.
    pub fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.notes.path().join("notes")).unwrap_or_default();
        let texts = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        texts
            .map(|note| note.expect("a whole note")["note"].to_string())
            .collect()
    }

    /// Scripts a model answer that calls `note` for each of `notes`.
    pub fn wants(&self, notes: &[&str]) {
        let calls = notes.iter().map(|note| call(note));
        self.setup
            .fake
            .push(ModelMessage::new(calls.collect::<Vec<MessagePart>>()));
    }

    /// Scripts a model answer with a text.
    pub fn says(&self, words: &str) {
        self.setup.fake.push(ModelMessage::text([words]));
    }

    /// Submits a turn that must pause; returns the turn and its approval ids.
    pub async fn paused(&self, message: &str) -> (TurnId, Vec<String>) {
        let engine = &self.setup.engine;
        let turn = engine.api.submit(engine.session, message).await;
        let turn = turn.expect("an answer").turn_id;
        let row = self.ended(turn).await;
        assert_eq!(row["terminal"]["payload"]["status"], "paused", "{row}");
        (turn, self.open(turn).await)
    }

    /// Creates a session in which the model calls `note` once and then ends, however often it is
    /// called; returns the message to submit.
    pub async fn anew(&mut self, note: &str) -> String {
        let engine = &mut self.setup.engine;
        engine.session = engine.api.create().await.expect("a session");
        let message = format!("Write for {note}.");
        let fake = &self.setup.fake;
        fake.push_if(
            &message,
            ModelMessage::new([MessagePart::call(
                "call_1",
                "note",
                &json!({"note": format!("of {note}")}),
            )]),
        );
        fake.always(&format!("of {note}"), ModelMessage::text(["Done."]));
        message
    }

    /// Waits for the end of a turn.
    pub async fn ended(&self, turn: TurnId) -> Value {
        let ended = self.setup.engine.api.ended(turn).await;
        ended.expect("an answer")
    }

    /// The ids of the pending approval requests of a turn.
    pub async fn open(&self, turn: TurnId) -> Vec<String> {
        let path = format!("/turns/{turn}/approvals");
        let list = self.setup.engine.api.get(&path).await.expect("an answer");
        let list = list.json();
        let approvals = list["approvals"].as_array().expect("a list").iter();
        let open = approvals.filter(|question| question["state"] == "pending");
        let id = |question: &Value| question["approval_id"].as_str().map(str::to_owned);
        open.filter_map(id).collect()
    }

    /// Decides one approval request.
    pub async fn answer(
        &self,
        turn: TurnId,
        id: &str,
        decision: &str,
    ) -> Result<ApiResponse, NoResponse> {
        let body = json!({"approval_id": id, "decision": decision});
        self.post(turn, body).await
    }

    /// Posts decisions as a JSON body.
    pub async fn post(&self, turn: TurnId, body: Value) -> Result<ApiResponse, NoResponse> {
        let path = format!("/turns/{turn}/approvals");
        self.setup.engine.api.post(&path, body).await
    }

    /// Approves the last pending request; returns the resumed turn.
    pub async fn yes(&self, turn: TurnId, id: &str) -> TurnId {
        let answer = self.answer(turn, id, "approve").await.expect("an answer");
        resumed_turn(&answer)
    }

    /// Checks that the provider rejected no request, and the history.
    pub async fn check_history(&self) {
        self.setup.assert_no_rejections();
        self.setup.engine.check_history().await;
    }
}

/// A model call of the tool `note`.
pub fn call(note: &str) -> MessagePart {
    MessagePart::call(&format!("call_{note}"), "note", &json!({"note": note}))
}

/// The resumed turn in the response to the last decision.
pub fn resumed_turn(answer: &ApiResponse) -> TurnId {
    assert_eq!(answer.status, 202, "{}", answer.body);
    let body = answer.json();
    assert_eq!(body["remaining"], 0, "{body}");
    let next = body["next_turn_id"].as_str().expect("a turn");
    next.parse().expect("a turn's id")
}
