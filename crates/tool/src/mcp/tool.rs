//! A tool of a server as a tool of an agent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::port::BoxFuture;
use turnwire_pack::ToolDef;

use crate::checked::InputSchema;
use crate::mcp::answer::{Answer, read};
use crate::mcp::call::{Lapse, call};
use crate::mcp::error::said;
use crate::mcp::list::Found;
use crate::mcp::pace::Pace;
use crate::mcp::server::Server;
use crate::secrets::Secrets;
use crate::tool::{Call, Tool, ToolFailure};

/// What a call may take beyond its own time, so that this ends first and tells the reason; a
/// server that is away is waited for too.
const MARGIN: Duration = Duration::from_secs(3);

/// A tool behind a server.
pub(crate) struct Mcp {
    def: ToolDef,
    /// What the server calls it.
    theirs: String,
    input: Arc<InputSchema>,
    server: Arc<Server>,
    /// What the server was given and is for nobody else.
    secrets: Arc<Secrets>,
    within: Duration,
}

impl Mcp {
    /// The tool `found` of `server` as `def` says; its input, and what `def` leaves open, is as the
    /// server says. Fails in words if it cannot be used.
    pub(crate) fn new(
        def: &ToolDef,
        found: &Found,
        (server, secrets): (&Arc<Server>, &Arc<Secrets>),
        call_timeout: Duration,
    ) -> Result<Self, String> {
        let input = found.input.clone()?;
        let mut def = def.clone();
        if def.description.is_empty() {
            def.description.clone_from(&found.description);
        }
        let within = def.timeout_ms.map_or(call_timeout, Duration::from_millis);
        Ok(Self {
            def,
            theirs: found.name.clone(),
            input,
            server: Arc::clone(server),
            secrets: Arc::clone(secrets),
            within,
        })
    }
}

impl Tool for Mcp {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        self.input.text().clone()
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Mcp
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.within + MARGIN)
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn approval(&self) -> bool {
        self.def.approval
    }

    fn server(&self) -> Option<&str> {
        Some(&self.server.name)
    }

    fn judge(&self, input: &Value) -> Option<Result<(), ToolFailure>> {
        Some(self.input.check(input))
    }

    fn run(&self, used: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let (server, input) = (Arc::clone(&self.server), Arc::clone(&self.input));
        let (theirs, within) = (self.theirs.clone(), self.within);
        let status = self.def.progress_status.clone();
        let (name, secrets) = (self.def.name.clone(), Arc::clone(&self.secrets));
        Box::pin(async move {
            input.check(&used.input)?;
            let Value::Object(arguments) = used.input.clone() else {
                return Err(ToolFailure::invalid_input("The input must be an object."));
            };
            let turn_id = used.scene.turn_id;
            let mut pace = Pace::new(&server.name, &name, status, used);
            if server.first_of(turn_id) {
                pace.begun().await;
            }
            let given = call(&server, &theirs, arguments, within, &mut pace).await;
            match given.map(|result| read(result, &secrets)) {
                Ok(Answer::Good(value)) => Ok(value),
                Ok(Answer::Error(words)) => Err(ToolFailure::internal(words)),
                Ok(Answer::TooLarge) => Err(ToolFailure::internal(
                    "The tool's result is too large to be read; ask for less.",
                )),
                Err(lapse) => Err(failure(lapse, &secrets)),
            }
        })
    }
}

fn failure(lapse: Lapse, secrets: &Secrets) -> ToolFailure {
    // Keys first: the beginning of one that was cut would not be known again.
    let told = |words: String| said(&secrets.hide(words));
    match lapse {
        Lapse::Away => ToolFailure::internal("The tool's server is not there now."),
        Lapse::Broke => ToolFailure::internal("The tool's server went away while it worked."),
        Lapse::Cut => ToolFailure::internal("The tool's server broke off its answer."),
        Lapse::Timeout => ToolFailure::new(
            ToolErrorClass::Timeout,
            "The tool did not give a result in time.",
        ),
        Lapse::Unfit(words) => ToolFailure::invalid_input(told(words)),
        Lapse::Refused(words) => ToolFailure::internal(told(words)),
        Lapse::Other => {
            ToolFailure::internal("The tool wants something that cannot be given here.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g6_a_key_where_a_refusal_is_cut_leaves_nothing_of_itself() {
        let secrets = Secrets::of_env(&[("API_KEY".to_owned(), "sk-at-the-cut".to_owned())]);
        let before = "x".repeat(294);
        let words = format!("{before}sk-at-the-cut and more");
        let expected = format!("{before}*** an");
        for lapse in [Lapse::Unfit(words.clone()), Lapse::Refused(words)] {
            let told = failure(lapse, &secrets).told;
            assert_eq!(told, expected);
        }
    }
}
