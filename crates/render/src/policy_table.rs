//! The policies that the turns of one cohort are bound to: one per event type and one per status
//! id.
//!
//! A table is built once for each set of active flags: the policies of the registry, then the
//! overrides of the flags in the order of the file. A lookup reads an array for a type, and one
//! map entry for a status.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use turnwire_event::metric::TurnDimensions;
use turnwire_event::{Actor, ActorKind, EventType, RenderPolicy};
use turnwire_pack::{OverrideTarget, Pack, RegisteredStatus, RenderOverride, StatusLifecycle};

use crate::event_policy::{EVENT_TYPE_COUNT, default_policy, override_policy};
use crate::policy_metrics::{PolicyMetrics, SubagentLabels};

/// The policy of one status id.
#[derive(Debug)]
pub(crate) struct StatusPolicy {
    pub id: String,
    pub policy: RenderPolicy,
    /// The key of the text in the locale files.
    pub render_key: String,
    /// The ids of the sub-agents that may emit the status.
    emitters: Vec<String>,
    /// True if actors other than sub-agents may emit the status.
    allows_platform: bool,
    /// For a deprecated id: true once a warning was logged.
    deprecated: Option<AtomicBool>,
}

/// The rendering policies for one set of active flags.
#[derive(Debug)]
pub(crate) struct PolicyTable {
    /// The source of the texts, or `None` for the defaults without a pack.
    pub pack: Option<Arc<Pack>>,
    /// How long statuses and text are buffered.
    pub window: Duration,
    pub metrics: PolicyMetrics,
    by_type: [RenderPolicy; EVENT_TYPE_COUNT],
    ids: HashMap<String, usize>,
    statuses: Vec<StatusPolicy>,
}

impl PolicyTable {
    /// The default policies. No status is registered.
    pub(crate) fn plain(definition: &str) -> Self {
        Self {
            pack: None,
            window: Duration::ZERO,
            metrics: PolicyMetrics::new(TurnDimensions::of_definition(definition), Vec::new(), 0),
            by_type: default_policies(),
            ids: HashMap::new(),
            statuses: Vec::new(),
        }
    }

    /// The policies of `pack` while the flags of `overrides` are active.
    pub(crate) fn new(
        pack: Arc<Pack>,
        overrides: &[&RenderOverride],
        dimensions: TurnDimensions,
    ) -> Self {
        let mut by_type = default_policies();
        let mut any_status = None;
        for rule in overrides {
            let OverrideTarget::Type(kind) = rule.target else {
                continue;
            };
            match rule
                .policy
                .map(|requested| override_policy(kind, requested))
            {
                None => {}
                Some(Some(policy)) if kind == EventType::StatusEmitted => any_status = Some(policy),
                Some(Some(policy)) => by_type[kind as usize] = policy,
                Some(None) => {
                    tracing::warn!(flag = rule.flag, event_type = %kind, "override ignored: flags cannot change the policy of this event type");
                }
            }
        }
        let entries = &pack.registry.entries;
        let status = |entry| StatusPolicy::new(entry, any_status, overrides, &pack);
        let statuses: Vec<StatusPolicy> = entries.iter().map(status).collect();
        let index = |(index, entry): (usize, &RegisteredStatus)| (entry.id.clone(), index);
        let subagents = pack.agents.iter().map(|agent| SubagentLabels {
            sub_agent_id: agent.id.clone(),
            vertical: agent.vertical.clone().unwrap_or_default(),
        });
        Self {
            window: Duration::from_millis(pack.limits.status_window_ms),
            metrics: PolicyMetrics::new(dimensions, subagents.collect(), statuses.len()),
            by_type,
            ids: entries.iter().enumerate().map(index).collect(),
            statuses,
            pack: Some(pack),
        }
    }

    /// The policy of an event type. The policy of a status also depends on its id:
    /// [`Self::status`].
    pub(crate) const fn policy(&self, kind: EventType) -> RenderPolicy {
        self.by_type[kind as usize]
    }

    /// The index of the status `id`, if the id is registered and `actor` may emit it (S1-070).
    pub(crate) fn find(&self, id: &str, actor: &Actor) -> Option<usize> {
        let index = *self.ids.get(id)?;
        self.statuses[index].allows(actor).then_some(index)
    }

    /// The status at an index from [`Self::find`].
    pub(crate) fn status(&self, index: usize) -> &StatusPolicy {
        &self.statuses[index]
    }
}

impl StatusPolicy {
    /// An override of the id takes precedence over one of the type, a later one over an earlier.
    fn new(
        entry: &RegisteredStatus,
        any_status: Option<RenderPolicy>,
        overrides: &[&RenderOverride],
        pack: &Pack,
    ) -> Self {
        let mut policy = any_status.unwrap_or(entry.policy);
        let mut render_key = &entry.render_key;
        for rule in overrides {
            if !matches!(&rule.target, OverrideTarget::Status(id) if *id == entry.id) {
                continue;
            }
            policy = rule.policy.unwrap_or(policy);
            render_key = rule.render_key.as_ref().unwrap_or(render_key);
        }
        // Forward shows the text of the registry entry (D-86).
        if policy == RenderPolicy::Forward {
            render_key = &entry.render_key;
        }
        let orchestrator_id = &pack.orchestrator.id;
        Self {
            id: entry.id.clone(),
            policy,
            render_key: render_key.clone(),
            emitters: entry.emitters.clone(),
            allows_platform: entry.fragment.starts_with("platform/")
                || entry.emitters.contains(orchestrator_id),
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
            | ActorKind::Relay => self.allows_platform,
        }
    }

    /// Logs a warning once per table if the id is deprecated.
    pub(crate) fn warn_if_deprecated(&self) {
        if let Some(was_logged) = &self.deprecated
            && !was_logged.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(event_id = self.id, "a deprecated status was emitted");
        }
    }
}

fn default_policies() -> [RenderPolicy; EVENT_TYPE_COUNT] {
    std::array::from_fn(|index| default_policy(EventType::ALL[index]))
}
