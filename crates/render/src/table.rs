//! What a cohort's turns are bound to: one policy for every type and one for every status id.
//!
//! Built once for each set of active flags: the registry's policies, then what the flags override,
//! in the order of the file. Looking a type up is reading an array; looking a status up is one map.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use turnwire_event::{Actor, ActorKind, EventType, RenderPolicy};
use turnwire_pack::{OverrideTarget, Pack, RegisteredStatus, RenderOverride, StatusLifecycle};

use crate::kind::{KINDS, overridden, policy};
use crate::meter::{Meter, Who};

/// How a status id is shown.
#[derive(Debug)]
pub(crate) struct Status {
    /// The id.
    pub id: String,
    /// How it is shown.
    pub policy: RenderPolicy,
    /// The text that is shown.
    pub render_key: String,
    /// The sub-agents that may emit it.
    emitters: Vec<String>,
    /// Whether everyone who is not a sub-agent may emit it.
    platform: bool,
    /// For a deprecated id: whether that was said.
    deprecated: Option<AtomicBool>,
}

#[derive(Debug)]
pub(crate) struct Table {
    /// The texts; none where there is no pack.
    pub pack: Option<Arc<Pack>>,
    /// How long statuses and text are gathered.
    pub window: Duration,
    /// The counters.
    pub meter: Meter,
    kinds: [RenderPolicy; KINDS],
    ids: HashMap<String, usize>,
    statuses: Vec<Status>,
}

impl Table {
    /// The defaults alone: no status is registered.
    pub(crate) fn plain(definition: &str) -> Self {
        Self {
            pack: None,
            window: Duration::ZERO,
            meter: Meter::new(definition.to_owned(), Vec::new(), 0),
            kinds: defaults(),
            ids: HashMap::new(),
            statuses: Vec::new(),
        }
    }

    /// What `pack` says while the flags of `overrides` are active.
    pub(crate) fn new(pack: Arc<Pack>, overrides: &[&RenderOverride], definition: String) -> Self {
        let mut kinds = defaults();
        let mut any_status = None;
        for change in overrides {
            let OverrideTarget::Type(kind) = change.target else {
                continue;
            };
            match change.policy.map(|wanted| overridden(kind, wanted)) {
                None => {}
                Some(Some(policy)) if kind == EventType::StatusEmitted => any_status = Some(policy),
                Some(Some(policy)) => kinds[kind as usize] = policy,
                Some(None) => {
                    tracing::warn!(flag = change.flag, event_type = %kind, "a flag may not change how this type is shown");
                }
            }
        }
        let entries = &pack.registry.entries;
        let status = |entry| Status::new(entry, any_status, overrides, &pack);
        let statuses: Vec<Status> = entries.iter().map(status).collect();
        let index = |(index, entry): (usize, &RegisteredStatus)| (entry.id.clone(), index);
        let who = pack.agents.iter().map(|agent| Who {
            sub_agent_id: agent.id.clone(),
            vertical: agent.vertical.clone().unwrap_or_default(),
        });
        Self {
            window: Duration::from_millis(pack.limits.status_window_ms),
            meter: Meter::new(definition, who.collect(), statuses.len()),
            kinds,
            ids: entries.iter().enumerate().map(index).collect(),
            statuses,
            pack: Some(pack),
        }
    }

    /// How a type is shown; for a status the id says more.
    pub(crate) const fn policy(&self, kind: EventType) -> RenderPolicy {
        self.kinds[kind as usize]
    }

    /// Where the status `id` stands, if it is registered and `actor` may emit it (S1-070).
    pub(crate) fn find(&self, id: &str, actor: &Actor) -> Option<usize> {
        let index = *self.ids.get(id)?;
        self.statuses[index].allows(actor).then_some(index)
    }

    /// The status that stands there.
    pub(crate) fn status(&self, index: usize) -> &Status {
        &self.statuses[index]
    }
}

impl Status {
    /// An override of the id weighs more than one of the type, a later one more than an earlier.
    fn new(
        entry: &RegisteredStatus,
        any_status: Option<RenderPolicy>,
        overrides: &[&RenderOverride],
        pack: &Pack,
    ) -> Self {
        let mut policy = any_status.unwrap_or(entry.policy);
        let mut render_key = &entry.render_key;
        for change in overrides {
            if !matches!(&change.target, OverrideTarget::Status(id) if *id == entry.id) {
                continue;
            }
            policy = change.policy.unwrap_or(policy);
            render_key = change.render_key.as_ref().unwrap_or(render_key);
        }
        // Forward is the text as the registry has it (D-86).
        if policy == RenderPolicy::Forward {
            render_key = &entry.render_key;
        }
        let speaker = &pack.orchestrator.id;
        Self {
            id: entry.id.clone(),
            policy,
            render_key: render_key.clone(),
            emitters: entry.emitters.clone(),
            platform: entry.fragment.starts_with("platform/") || entry.emitters.contains(speaker),
            deprecated: match entry.lifecycle {
                StatusLifecycle::Active => None,
                StatusLifecycle::Deprecated => Some(AtomicBool::new(false)),
            },
        }
    }

    fn allows(&self, actor: &Actor) -> bool {
        match actor.kind() {
            ActorKind::Subagent => self.emitters.iter().any(|id| actor.is_subagent(id)),
            ActorKind::User
            | ActorKind::Orchestrator
            | ActorKind::Tool
            | ActorKind::Worker
            | ActorKind::System
            | ActorKind::Relay => self.platform,
        }
    }

    /// Says once that an agent still emits an id that it should not.
    pub(crate) fn mention_deprecation(&self) {
        if let Some(said) = &self.deprecated
            && !said.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(event_id = self.id, "a deprecated status is still emitted");
        }
    }
}

fn defaults() -> [RenderPolicy; KINDS] {
    std::array::from_fn(|index| policy(EventType::ALL[index]))
}
