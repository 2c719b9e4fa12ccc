//! Tools that wait for a person. What does not fit its schema is not worth a question: the model
//! is told at once. The others are put to the person, and the turn ends with them open.
//!
//! ```text
//! the other tools run │ approval.requested* │ the turn ends as paused, nothing was called
//! ```

use std::sync::Arc;

use turnwire_event::body::approval::Requested;
use turnwire_event::code::{TurnKind, TurnStatus};
use turnwire_event::port::{Outcome, Refusal};
use turnwire_event::{ApprovalId, Body};
use turnwire_model::Said;
use turnwire_tool::{ToolFailure, check_input};

use crate::resources::agent_resources::{Desk, Means};
use crate::tool_call::execute::{Use, decline};
use crate::tool_call::summary::summary;

/// The tools of one message, told apart.
pub(crate) struct Sifted {
    /// Those that run right away.
    pub(crate) now: Vec<Use>,
    /// Those that a person is asked about.
    pub(crate) later: Vec<Use>,
    /// Those that would need a person's word, with an input that does not fit.
    unfit: Vec<(Use, ToolFailure)>,
}

/// Tells apart which of `uses` need a person's word.
pub(crate) fn sift(means: &Means, kind: TurnKind, uses: Vec<Use>) -> Sifted {
    let mut sifted = Sifted {
        now: Vec::new(),
        later: Vec::new(),
        unfit: Vec::new(),
    };
    // Whoever a worker works for cannot wait for a person: what needs a word is refused, as it is
    // for sub-agents, and no question is left behind that nobody waits for.
    if kind == TurnKind::Worker {
        sifted.now = uses;
        return sifted;
    }
    for asked in uses {
        match means.toolbox.get(&asked.name) {
            // One that cannot be read is refused as it always is.
            Some(tool) if tool.approval() && !asked.broken => {
                match check_input(&**tool, &asked.input) {
                    Ok(()) => sifted.later.push(asked),
                    Err(why) => sifted.unfit.push((asked, why)),
                }
            }
            Some(_) | None => sifted.now.push(asked),
        }
    }
    sifted
}

impl Sifted {
    /// Gives those that do not fit their result.
    pub(crate) async fn refuse(&mut self, desk: &Desk<'_>) -> Result<Vec<Arc<Said>>, Refusal> {
        let mut said = Vec::with_capacity(self.unfit.len());
        for (asked, why) in self.unfit.drain(..) {
            said.push(decline(desk, &asked, why).await?);
        }
        Ok(said)
    }
}

/// Puts `uses` to the person.
pub(crate) async fn ask(desk: &Desk<'_>, uses: &[Use]) -> Result<(), Refusal> {
    let means = desk.means;
    for asked in uses {
        let requested = Requested {
            approval_id: ApprovalId(means.mint.ulid()),
            tool_use_id: asked.id,
            tool_name: asked.name.clone(),
            input_summary: summary(&asked.input, means.options.summary_chars_max),
        };
        let actor = means.who.actor();
        desk.tell(actor, Body::ApprovalRequested(requested)).await?;
    }
    Ok(())
}

/// The end of a turn that has asked.
pub(crate) fn paused() -> Outcome {
    Outcome {
        status: TurnStatus::Paused,
        error: None,
        reason: None,
    }
}
