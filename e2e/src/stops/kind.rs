//! Kinds of tools, and how many of them run at once.

use std::path::PathBuf;

use serde_json::{Value, json};
use turnwire_event::code::StopOutcome;
use turnwire_testkit::provider::MessagePart;
use turnwire_testkit::stubborn::{self, StubbornPrograms};

/// The kind of tool that runs when the turn is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// A function of the server.
    Sleep,
    /// A page that never ends.
    Http,
    /// A program that ignores TERM.
    Ignores,
    /// A program with a grandchild that ignores TERM.
    Grandchild,
    /// A program with a descendant in a session of its own.
    Escapee,
    /// A program that writes without end and ignores TERM.
    Endless,
    /// A program that stops its guard and ignores TERM.
    Stopper,
    /// A slow tool of a tool server.
    Mcp,
    /// A slow data service; sub-agents alone ask it.
    Ccs,
    /// A worker that runs a program which ignores TERM.
    Delegate,
}

/// How many tools run at once, and for which agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOut {
    One,
    Three,
    /// Two sub-agents with one each.
    Agents,
}

impl FanOut {
    /// How many tools do the work.
    pub fn leaves(self) -> usize {
        match self {
            Self::One => 1,
            Self::Three => 3,
            Self::Agents => 2,
        }
    }
}

/// The sub-agents of the stage.
const AGENTS: [&str; 3] = ["shop", "rewards", "support"];

impl ToolKind {
    /// All kinds, for tests over each.
    pub const ALL: [Self; 10] = [
        Self::Sleep,
        Self::Http,
        Self::Ignores,
        Self::Grandchild,
        Self::Escapee,
        Self::Endless,
        Self::Stopper,
        Self::Mcp,
        Self::Ccs,
        Self::Delegate,
    ];

    /// Its program among those that are hard to end.
    fn program(self, programs: &StubbornPrograms) -> Option<PathBuf> {
        Some(match self {
            Self::Ignores => programs.program(stubborn::StubbornKind::IgnoresTerm),
            Self::Grandchild => programs.program(stubborn::StubbornKind::Grandchild),
            Self::Escapee => programs.program(stubborn::StubbornKind::Escapee),
            Self::Stopper => programs.program(stubborn::StubbornKind::Stopper),
            // Slowly enough that no bound of its output ends it.
            Self::Endless => programs.write(
                "drips",
                "trap '' TERM; ready; while :; do echo \"$MARK\"; sleep 0.2; done",
            ),
            Self::Delegate => programs.write("dug", "trap '' TERM; ready; exec sleep 600"),
            Self::Sleep | Self::Http | Self::Mcp | Self::Ccs => return None,
        })
    }

    /// How many processes say that they are set up, for each tool.
    pub fn processes(self) -> usize {
        match self {
            Self::Ignores | Self::Endless | Self::Stopper | Self::Delegate => 1,
            Self::Escapee => 2,
            Self::Grandchild => 3,
            Self::Sleep | Self::Http | Self::Mcp | Self::Ccs => 0,
        }
    }

    /// How many processes the receipt of the turn names, for each tool: a worker's are in its own.
    pub fn lines(self) -> usize {
        match self {
            Self::Ignores | Self::Grandchild | Self::Escapee | Self::Endless | Self::Stopper => 1,
            Self::Sleep | Self::Http | Self::Mcp | Self::Ccs | Self::Delegate => 0,
        }
    }

    /// What becomes of the tool.
    pub fn outcome(self) -> StopOutcome {
        match self {
            Self::Ignores | Self::Grandchild | Self::Escapee | Self::Endless | Self::Stopper => {
                StopOutcome::Killed
            }
            Self::Sleep | Self::Http | Self::Mcp | Self::Delegate => StopOutcome::Stopped,
            Self::Ccs => StopOutcome::Discarded,
        }
    }

    /// What a sub-agent is asked, so that it works with the tool.
    fn query(self, programs: &StubbornPrograms) -> String {
        match self.program(programs) {
            Some(path) => path.display().to_string(),
            None => format!("{self:?}").to_lowercase(),
        }
    }

    fn tool(self, programs: &StubbornPrograms) -> (&'static str, Value) {
        let path = self
            .program(programs)
            .map(|path| path.display().to_string());
        match self {
            Self::Sleep => ("nap", json!({"ms": 30_000})),
            Self::Http => ("drip", json!({})),
            Self::Mcp => ("slow_mcp", json!({"seconds": 60})),
            Self::Delegate => ("dig", json!({"task": path})),
            Self::Ignores | Self::Grandchild | Self::Escapee | Self::Endless | Self::Stopper => {
                ("program", json!({"path": path}))
            }
            Self::Ccs => ("ask_shop", json!({"query": "ccs"})),
        }
    }

    /// What the model asks for.
    pub fn parts(self, fan: FanOut, programs: &StubbornPrograms) -> Vec<MessagePart> {
        let asks = fan == FanOut::Agents || self == Self::Ccs;
        (0..fan.leaves())
            .map(|n| {
                let id = format!("call_{n}");
                if asks {
                    let query = json!({"query": self.query(programs)});
                    return MessagePart::call(&id, &format!("ask_{}", AGENTS[n]), &query);
                }
                let (name, input) = self.tool(programs);
                MessagePart::call(&id, name, &input)
            })
            .collect()
    }
}
