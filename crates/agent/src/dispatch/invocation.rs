//! One invocation of a sub-agent: what it needs, what it answers, and why it may not.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::InvocationId;
use turnwire_event::body::subagent::SubagentContext;
use turnwire_event::code::{AgentErrorClass, LlmErrorClass};
use turnwire_event::port::{EmitRefusal, HistoryReader};
use turnwire_tool::ToolContext;

use super::sub_agent::BoundSubAgent;
use crate::emitter::sub_agent_emitter::SubAgentEmitter;
use crate::model_call::fallback::CallHalt;
use crate::resources::agent_context::WaitMeter;
use crate::resources::model_choice::class_name;
use crate::resources::turn_budget::{BudgetLimit, TurnBudget};

/// An invocation that is ready to run.
pub(crate) struct Invocation {
    pub(crate) sub_agent: Arc<BoundSubAgent>,
    pub(crate) invocation_id: InvocationId,
    pub(crate) context: SubagentContext,
    pub(crate) question: String,
    pub(crate) tool_context: Arc<ToolContext>,
    pub(crate) history: Arc<dyn HistoryReader>,
    pub(crate) emitter: Arc<SubAgentEmitter>,
    pub(crate) wait_meter: Arc<WaitMeter>,
    pub(crate) budget: Arc<TurnBudget>,
    pub(crate) timeout: Duration,
    /// True if failures of data services are kept until the end: the turn may end with them
    /// (S1-102).
    pub(crate) defers_faults: bool,
    /// How long the sub-agent may be silent.
    pub(crate) watchdog: Duration,
}

/// The answer of a sub-agent, of one invocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SubAgentAnswer {
    pub(crate) text: String,
    /// True if some of its data was incomplete.
    pub(crate) has_caveat: bool,
    /// Tool results, as text, for the prompts of sub-agents in later turns.
    pub(crate) notes: Vec<String>,
}

/// An invocation without a complete answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InvocationError {
    /// The sub-agent answered, but some of its data was missing.
    Incomplete(SubAgentAnswer),
    /// The sub-agent gave no answer (axis 1).
    Failed(FailureCause),
    /// The session accepts no more events of the turn.
    Refused,
}

/// Why a sub-agent gave no answer: the class for events, and the name for the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// Its tools or models could not be created.
    Unavailable,
    /// Its memory could not be read.
    Memory,
    /// Its model call failed.
    ModelCall(LlmErrorClass),
    /// A [`BudgetLimit`] of the turn, or its own limit of model calls.
    Limit(BudgetLimit),
    /// Its model stopped without a text, and nothing was shown.
    EmptyAnswer,
    /// A tool failed beyond repair.
    FatalTool,
    /// The invocation took longer than its timeout.
    TimedOut,
    /// The code of the server panicked.
    Panicked,
}

impl FailureCause {
    pub(crate) const fn class(self) -> AgentErrorClass {
        match self {
            Self::Unavailable => AgentErrorClass::Instantiation,
            Self::ModelCall(_) | Self::Limit(_) | Self::EmptyAnswer => AgentErrorClass::Model,
            Self::FatalTool => AgentErrorClass::Tool,
            Self::TimedOut => AgentErrorClass::Timeout,
            Self::Memory | Self::Panicked => AgentErrorClass::Internal,
        }
    }

    /// The name in the server's log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "no_model_or_tools",
            Self::Memory => "memory",
            Self::ModelCall(class) => class_name(class),
            Self::Limit(limit) => limit.reason(),
            Self::EmptyAnswer => "empty_answer",
            Self::FatalTool => "fatal_tool",
            Self::TimedOut => "timeout",
            Self::Panicked => "panic",
        }
    }
}

impl From<EmitRefusal> for InvocationError {
    fn from(_: EmitRefusal) -> Self {
        Self::Refused
    }
}

impl From<CallHalt> for InvocationError {
    fn from(halt: CallHalt) -> Self {
        match halt {
            CallHalt::Refused => Self::Refused,
            CallHalt::Model(class) => Self::Failed(FailureCause::ModelCall(class)),
            CallHalt::Limit(limit) => Self::Failed(FailureCause::Limit(limit)),
        }
    }
}
