//! The [`Actor`] of an event: who caused it, as the string of R-09 and as a value that filters compare.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::id::{IdError, SessionId, text_serde};

/// The kind of an [`Actor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActorKind {
    User,
    /// The agent that talks to the user.
    Orchestrator,
    /// An agent that the orchestrator calls.
    Subagent,
    Tool,
    Worker,
    System,
    /// The relay in front of an agent on another server.
    Relay,
}

impl ActorKind {
    const ALL: [Self; 7] = [
        Self::User,
        Self::Orchestrator,
        Self::Subagent,
        Self::Tool,
        Self::Worker,
        Self::System,
        Self::Relay,
    ];

    /// The kind as it is written before the colon, for example `subagent`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Orchestrator => "orchestrator",
            Self::Subagent => "subagent",
            Self::Tool => "tool",
            Self::Worker => "worker",
            Self::System => "system",
            Self::Relay => "relay",
        }
    }

    const fn has_name(self) -> bool {
        matches!(self, Self::Subagent | Self::Tool | Self::Worker)
    }
}

/// Who caused an event: a kind, and for sub-agents, tools and workers their name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    kind: ActorKind,
    name: Option<Arc<str>>,
}

impl Actor {
    /// The end user of the session.
    pub const USER: Self = Self::unnamed(ActorKind::User);
    /// The agent that talks to the user.
    pub const ORCHESTRATOR: Self = Self::unnamed(ActorKind::Orchestrator);
    /// The server, without an agent.
    pub const SYSTEM: Self = Self::unnamed(ActorKind::System);
    /// Every worker, as a pattern of a filter.
    pub const WORKER: Self = Self::unnamed(ActorKind::Worker);

    const fn unnamed(kind: ActorKind) -> Self {
        Self { kind, name: None }
    }

    /// A named actor. Characters outside `[A-Za-z0-9_.:-]` become `_` and the name is cut at 128,
    /// so that an actor never needs escaping.
    pub fn named(kind: ActorKind, name: &str) -> Self {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_.:-".contains(*c);
        let chars = name.chars().take(128);
        let clean: String = chars
            .map(|c| Some(c).filter(is_plain).unwrap_or('_'))
            .collect();
        Self {
            kind,
            name: Some(clean.into()),
        }
    }

    /// The sub-agent with the id `id`.
    pub fn subagent(id: &str) -> Self {
        Self::named(ActorKind::Subagent, id)
    }

    /// True for the sub-agent with the id `id`.
    pub fn is_subagent(&self, id: &str) -> bool {
        self.kind == ActorKind::Subagent && self.name.as_deref() == Some(id)
    }

    /// The id of the sub-agent; `None` for other kinds.
    pub fn sub_agent(&self) -> Option<&str> {
        self.name().filter(|_| self.kind == ActorKind::Subagent)
    }

    /// The worker that runs in `session`.
    pub fn worker(session: SessionId) -> Self {
        Self::named(ActorKind::Worker, &session.to_string())
    }

    /// The name of the sub-agent, tool or worker; `None` for other kinds.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The tool called `name`.
    pub fn tool(name: &str) -> Self {
        Self::named(ActorKind::Tool, name)
    }

    /// The kind, without the name.
    pub fn kind(&self) -> ActorKind {
        self.kind
    }

    /// True if the filter entry `pattern` selects this actor: exactly, or by kind alone.
    pub fn matches(&self, pattern: &Self) -> bool {
        self.kind == pattern.kind && (pattern.name.is_none() || pattern.name == self.name)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => f.write_str(self.kind.name()),
            Some(name) => write!(f, "{}:{name}", self.kind.name()),
        }
    }
}

impl FromStr for Actor {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = IdError { what: "actor" };
        let (word, name) = match text.split_once(':') {
            None => (text, None),
            Some((word, name)) => (word, Some(name)),
        };
        let kind = ActorKind::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or(bad.clone())?;
        let actor = name.map_or(Self::unnamed(kind), |name| Self::named(kind, name));
        // A name that had to be cleaned is not the name of any actor.
        let is_valid = match name {
            None => true,
            Some("") => false,
            Some(_) => kind.has_name() && actor.name() == name,
        };
        is_valid.then_some(actor).ok_or(bad)
    }
}

text_serde!(Actor, "Actor", {
    "type": "string",
    "pattern": "^(user|orchestrator|system|relay|(subagent|tool|worker)(:[A-Za-z0-9_.:-]{1,128})?)$"
});

#[cfg(test)]
mod tests {
    use super::*;

    // R-09, D-36
    #[test]
    fn actor_filter_matches_exactly_or_by_kind() {
        let shop: Actor = "subagent:shop".parse().expect("an actor");
        assert!(shop.matches(&"subagent".parse().expect("a kind")));
        assert!(shop.matches(&shop));
        assert!(!shop.matches(&"subagent:rewards".parse().expect("an actor")));
        assert!(!shop.matches(&Actor::ORCHESTRATOR));
        for bad in ["", "nobody", "user:x", "tool:", "tool:a b"] {
            assert!(bad.parse::<Actor>().is_err(), "{bad}");
        }
        assert_eq!(Actor::tool("a \"b\"").to_string(), "tool:a__b_");
    }
}
