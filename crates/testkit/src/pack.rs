//! Packs for the real server, built in code: a small market with three verticals whose data comes
//! from a given data service, and edits of it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::script::ModelScript;

/// The files of a pack by path.
#[derive(Clone, Debug, Default)]
pub struct TestPack {
    files: BTreeMap<String, String>,
}

impl TestPack {
    /// An orchestrator with the sub-agents shop, rewards and support (fan-out cap 3); the data service
    /// has the URL `ccs`. The pack has no script.
    pub fn market(ccs: &str) -> Self {
        let pack = Self::default()
            .put("pack.yaml", PACK)
            .put("orchestrator.yaml", ORCHESTRATOR)
            .put("connectors.yaml", &CONNECTORS.replace("CCS", ccs))
            .put("tools.yaml", TOOLS)
            .put("locales/en.yaml", EN)
            .put("locales/de.yaml", DE)
            .put("prompts/persona.md", "You are the market's assistant.\n")
            .put(
                "prompts/worker.md",
                "You work for the market's assistant.\n",
            )
            .put("platform/status_events.yaml", "[]\n");
        let agents = [
            (
                "shop",
                "search_offers, render_offer_list, render_offer_card, look_up",
                "searching_offers",
            ),
            ("rewards", "points_balance", "looking_up_points_balance"),
            ("support", "support_answer", "asking_support"),
        ];
        agents.into_iter().fold(pack, |pack, (id, tools, status)| {
            let agent = AGENT.replace("ID", id).replace("TOOLS", tools);
            let agent = agent.replace("STATUS", status);
            let entry = STATUS.replace("ID", status).replace("AGENT", id);
            pack.put(&format!("verticals/{id}/agent.yaml"), &agent)
                .put(&format!("verticals/{id}/status_events.yaml"), &entry)
        })
    }

    /// Reads the pack in a folder.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let mut pack = Self::default();
        let mut folders = vec![dir.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(dir) {
                    let text = std::fs::read_to_string(&path)?;
                    pack.files.insert(name.display().to_string(), text);
                }
            }
        }
        Ok(pack)
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn put(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// Removes a file, which must exist.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        assert!(self.files.remove(path).is_some(), "{path} is not there");
        self
    }

    /// Replaces `from` in a file by `to`; panics if the file does not contain `from`.
    #[must_use]
    pub fn change(mut self, path: &str, from: &str, to: &str) -> Self {
        let text = self.files.get_mut(path).expect("a file of the pack");
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        *text = text.replace(from, to);
        self
    }

    /// Adds a built-in function as a tool of a sub-agent.
    #[must_use]
    pub fn function(self, agent: &str, name: &str, function: &str) -> Self {
        let line = format!(
            "tools:\n  - {{name: {name}, connector: direct, function: {function}, description: For trying.}}\n"
        );
        self.change("tools.yaml", "tools:\n", &line).change(
            &format!("verticals/{agent}/agent.yaml"),
            "tools: [",
            &format!("tools: [{name}, "),
        )
    }

    /// Gives the tool `points_balance` to shop as well.
    #[must_use]
    pub fn with_shared_points(self) -> Self {
        let shop = "verticals/shop/agent.yaml";
        self.change(shop, "tools: [", "tools: [points_balance, ")
            .change(shop, "emits: [", "emits: [looking_up_points_balance, ")
            .change(
                "verticals/rewards/status_events.yaml",
                "[rewards]",
                "[rewards, shop]",
            )
    }

    /// Adds a flag to `pack.yaml`.
    #[must_use]
    pub fn flag(self, flag: &str, value: &str) -> Self {
        let text = self.text("pack.yaml").to_owned();
        let text = if text.contains("flags:\n") {
            text.replace("flags:\n", &format!("flags:\n  {flag}: {value}\n"))
        } else {
            format!("{text}flags:\n  {flag}: {value}\n")
        };
        self.put("pack.yaml", &text)
    }

    /// The text of a file, which must exist.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).expect("a file of the pack")
    }

    /// Adds the script of its model.
    #[must_use]
    pub fn script(self, script: &ModelScript) -> Self {
        self.put("scripts/test.yaml", &script.text())
    }

    /// Writes the pack to a folder and removes everything else from it.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        if dir.exists() {
            std::fs::remove_dir_all(dir)?;
        }
        for (path, text) in &self.files {
            let path = dir.join(path);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path, text)?;
        }
        Ok(())
    }
}

const PACK: &str = "\
name: stage
version: '1.0.0'
default_locale: en
models: {default: 'scripted:stage'}
fan_out: {cap: 3}
";

const ORCHESTRATOR: &str = "\
id: orchestrator
version: '1'
kind: orchestrator
description: Speaks with the person.
model: default
prompt_blocks: [persona]
sub_agents: [shop, rewards, support]
tools: [llm_feedback]
history: {max_messages: 60, max_tokens: 24000}
";

const AGENT: &str = "\
id: ID
version: '1'
kind: sub_agent
description: Knows everything about ID.
model: default
prompt_blocks: [worker]
tools: [TOOLS]
emits: [STATUS]
on_cancel: discard
default_status: STATUS
";

const STATUS: &str = "\
- id: ID
  description: What it is doing.
  default_render_key: status.ID
  default_policy: transform
  emitter_subagents: [AGENT]
  lifecycle: active
";

const CONNECTORS: &str = "\
services:
  market: {url: 'CCS'}
enrichers:
  - enricher_id: offer_search
    domain_type: offer_list
    service: market
    version: '1.2.0'
    payload_schema:
      type: object
      required: [items]
      properties:
        items:
          type: array
          items: {type: object, required: [id, title], properties: {id: {type: string}, title: {type: string}}}
  - {enricher_id: points, domain_type: points_balance, service: market, version: '1.0.0'}
  - {enricher_id: answers, domain_type: support_answer, service: market, version: '1.0.0'}
";

const TOOLS: &str = "\
tools:
  - name: search_offers
    connector: ccs_rest
    enricher_id: offer_search
    domain_type: offer_list
    description: Finds offers.
    input_schema: {type: object, properties: {query: {type: string}}}
    status: searching_offers
  - name: points_balance
    connector: ccs_rest
    enricher_id: points
    domain_type: points_balance
    description: Tells the points.
    input_schema: {type: object}
    status: looking_up_points_balance
  - name: support_answer
    connector: ccs_rest
    enricher_id: answers
    domain_type: support_answer
    description: Answers questions.
    input_schema: {type: object}
    status: asking_support
    remember: true
  - {name: render_offer_list, connector: render, shape: list, description: Shows offers.}
  - {name: render_offer_card, connector: render, shape: single, data_type: offer_list, description: Shows one offer.}
  - {name: look_up, connector: direct, function: emit_status, description: Emits a status.}
  - {name: llm_feedback, connector: direct, function: llm_feedback, description: Records feedback.}
";

const EN: &str = "\
status.searching_offers: {message: 'Searching for offers...', phrase: searching for offers}
status.looking_up_points_balance: {message: 'Looking up your points...', phrase: looking up your points}
status.asking_support: {message: 'Asking support...', phrase: asking support}
";

const DE: &str = "\
status.searching_offers: {message: 'Angebote werden gesucht …', phrase: Angebote werden gesucht}
status.looking_up_points_balance: {message: 'Punkte werden nachgesehen …', phrase: Punkte werden nachgesehen}
status.asking_support: {message: 'Der Kundendienst wird gefragt …', phrase: der Kundendienst wird gefragt}
";
