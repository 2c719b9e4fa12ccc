//! What tests of tools that wait for a person share: a stage with such tools, which leave a trace
//! on the disk when they act, and the questions and answers over the wire.

use serde_json::{Value, json};
use turnwire_event::TurnId;
use turnwire_testkit::api::{ApiResponse, NoResponse};
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage};
use turnwire_testkit::server::ServerPack;

use crate::models::ProviderFixture;

/// A stage whose speaker may take notes and nap, if a person says yes, and say something back
/// without asking.
#[derive(Debug)]
pub struct ApprovalFixture {
    /// The stage and its provider.
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
    /// A stage whose provider speaks a format.
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

    /// The notes that were taken: what had to happen once has left one mark.
    pub fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.notes.path().join("notes")).unwrap_or_default();
        let texts = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        texts
            .map(|note| note.expect("a whole note")["note"].to_string())
            .collect()
    }

    /// Has the model ask for notes at once.
    pub fn wants(&self, notes: &[&str]) {
        let calls = notes.iter().map(|note| call(note));
        self.setup
            .fake
            .push(ModelMessage::new(calls.collect::<Vec<MessagePart>>()));
    }

    /// Has the model say something.
    pub fn says(&self, words: &str) {
        self.setup.fake.push(ModelMessage::text([words]));
    }

    /// Says something that makes the turn pause; gives the turn and its questions.
    pub async fn paused(&self, message: &str) -> (TurnId, Vec<String>) {
        let engine = &self.setup.engine;
        let turn = engine.api.submit(engine.session, message).await;
        let turn = turn.expect("an answer").turn_id;
        let row = self.ended(turn).await;
        assert_eq!(row["terminal"]["payload"]["status"], "paused", "{row}");
        (turn, self.open(turn).await)
    }

    /// Begins a session in which the model takes one note and then is done, however often it is
    /// asked; gives the words to say.
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

    /// Waits for a turn's end.
    pub async fn ended(&self, turn: TurnId) -> Value {
        let ended = self.setup.engine.api.ended(turn).await;
        ended.expect("an answer")
    }

    /// The questions of a turn that have no answer.
    pub async fn open(&self, turn: TurnId) -> Vec<String> {
        let path = format!("/turns/{turn}/approvals");
        let list = self.setup.engine.api.get(&path).await.expect("an answer");
        let list = list.json();
        let approvals = list["approvals"].as_array().expect("a list").iter();
        let open = approvals.filter(|question| question["state"] == "pending");
        let id = |question: &Value| question["approval_id"].as_str().map(str::to_owned);
        open.filter_map(id).collect()
    }

    /// Answers one question.
    pub async fn answer(
        &self,
        turn: TurnId,
        id: &str,
        decision: &str,
    ) -> Result<ApiResponse, NoResponse> {
        let body = json!({"approval_id": id, "decision": decision});
        self.post(turn, body).await
    }

    /// Sends a body with answers.
    pub async fn post(&self, turn: TurnId, body: Value) -> Result<ApiResponse, NoResponse> {
        let path = format!("/turns/{turn}/approvals");
        self.setup.engine.api.post(&path, body).await
    }

    /// Says yes to one question, which is the last; gives the turn that goes on.
    pub async fn yes(&self, turn: TurnId, id: &str) -> TurnId {
        let answer = self.answer(turn, id, "approve").await.expect("an answer");
        leg(&answer)
    }

    /// Judges all that was seen: the provider refused nothing, and the log keeps every law.
    pub async fn check_history(&self) {
        self.setup.understood();
        self.setup.engine.check_history().await;
    }
}

/// A call of a note.
pub fn call(note: &str) -> MessagePart {
    MessagePart::call(&format!("call_{note}"), "note", &json!({"note": note}))
}

/// The turn that goes on, of an answer that opened it.
pub fn leg(answer: &ApiResponse) -> TurnId {
    assert_eq!(answer.status, 202, "{}", answer.body);
    let body = answer.json();
    assert_eq!(body["remaining"], 0, "{body}");
    let next = body["next_turn_id"].as_str().expect("a turn");
    next.parse().expect("a turn's id")
}
