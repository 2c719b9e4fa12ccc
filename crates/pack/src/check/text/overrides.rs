//! Checks `overrides.yaml`: known flags, statuses and event types, and policies that suit them.

use turnwire_event::{EventType, RenderPolicy};

use crate::check::manifest::CheckedManifest;
use crate::check::report::{FileReport, value_of, word, word_of};
use crate::check::text::status::CheckedStatuses;
use crate::finding::{Findings, KnownNames};
use crate::pack::overrides::{OverrideTarget, RenderOverride};
use crate::pack::status::{StatusLifecycle, StatusRegistry};
use crate::source::form::Pairs;
use crate::source::text::{ChangeSource, OverridesSource};
use crate::text::wording::{did_you_mean, one_line, quoted_list};
use crate::yaml::Located;

pub(crate) const FILE: &str = "overrides.yaml";

const FORWARD_OR_SUPPRESS: &[RenderPolicy] = &[RenderPolicy::Forward, RenderPolicy::Suppress];
const FORWARD_OR_BATCH: &[RenderPolicy] = &[RenderPolicy::Forward, RenderPolicy::Batch];
const ANY: &[RenderPolicy] = &[
    RenderPolicy::Forward,
    RenderPolicy::Transform,
    RenderPolicy::Suppress,
    RenderPolicy::Batch,
];

/// A key of the file that covers event types: its name, the types.
type OverridableName = (&'static str, &'static [EventType]);

/// All may be forwarded or suppressed, but for `text.delta`.
const OVERRIDABLE: [OverridableName; 10] = {
    use EventType as T;
    [
        (TEXT_DELTA, &[T::TextDelta]),
        (
            "tool_call",
            &[T::ToolCalled, T::ToolCompleted, T::ToolFailed],
        ),
        // Pairs of events are shown or hidden together (S1-046, S1-082).
        ("data", &[T::DataLoading, T::DataLoaded]),
        ("component.rendered", &[T::ComponentRendered]),
        ("error.reported", &[T::ErrorReported]),
        ("mcp.*", &MCP),
        ("mcp.list_tools_started", &[T::McpListToolsStarted]),
        ("mcp.list_tools_completed", &[T::McpListToolsCompleted]),
        ("mcp.session_started", &[T::McpSessionStarted]),
        ("mcp.session_progressed", &[T::McpSessionProgressed]),
    ]
};

/// The text of an answer, which is never suppressed.
const TEXT_DELTA: &str = "text.delta";
const MCP: [EventType; 4] = [
    EventType::McpListToolsStarted,
    EventType::McpListToolsCompleted,
    EventType::McpSessionStarted,
    EventType::McpSessionProgressed,
];

/// The names that an override may refer to.
pub(crate) struct OverrideContext<'a> {
    pub(crate) manifest: &'a CheckedManifest,
    pub(crate) statuses: &'a CheckedStatuses,
    pub(crate) agents: &'a KnownNames,
}

/// Each [`RenderOverride`], and the render keys that they use.
pub(crate) struct CheckedOverrides {
    pub(crate) overrides: Vec<RenderOverride>,
    pub(crate) keys: Vec<(String, Located<String>)>,
}

pub(crate) fn check(
    source: Option<&OverridesSource>,
    context: &OverrideContext<'_>,
    findings: &mut Findings,
) -> CheckedOverrides {
    let mut report = FileReport::new(FILE, findings);
    let flags = context.manifest.known_flags();
    let mut rules = CheckedOverrides {
        overrides: Vec::new(),
        keys: Vec::new(),
    };
    for (flag, changes) in source.iter().flat_map(|source| &source.0) {
        report.unknown(flag, "flag", &flags);
        check_flag(&mut report, &flag.value, changes, context, &mut rules);
    }
    rules
}

/// The render keys of statuses that are batched, for some users at least.
pub(crate) fn batched_keys<'a>(
    registry: &'a StatusRegistry,
    overrides: &'a [RenderOverride],
) -> Vec<&'a str> {
    let mut keys = Vec::new();
    for entry in &registry.entries {
        if entry.policy == RenderPolicy::Batch && entry.lifecycle == StatusLifecycle::Active {
            keys.push(entry.render_key.as_str());
        }
        let batched = overrides.iter().filter(|change| {
            change.policy == Some(RenderPolicy::Batch)
                && change.target == OverrideTarget::Status(entry.id.clone())
        });
        let changed_keys = batched.map(|change| change.render_key.as_deref());
        keys.extend(changed_keys.map(|key| key.unwrap_or(&entry.render_key)));
    }
    keys
}

fn check_flag(
    report: &mut FileReport<'_>,
    flag: &str,
    changes: &Pairs<Located<ChangeSource>>,
    context: &OverrideContext<'_>,
    rules: &mut CheckedOverrides,
) {
    for (name, change) in &changes.0 {
        let Some((targets, allowed)) = targets(report, name, context) else {
            continue;
        };
        let source = &change.value;
        if source.policy.is_none() && source.render_key.is_none() {
            let instead = "`policy: …` or `render_key: …`";
            report.error(change.position, "the override changes nothing", instead);
        }
        let policy = policy_of(report, &source.policy, &name.value, allowed);
        if let Some(key) = &source.render_key {
            if matches!(targets[..], [OverrideTarget::Status(_)]) {
                rules.keys.push((FILE.to_owned(), key.clone()));
            } else {
                let message = format!("`{}` has no text, so no `render_key`", name.value);
                let instead = "`policy: …`; only status ids have a text";
                report.error(key.position, message, instead);
            }
        }
        for target in targets {
            rules.overrides.push(RenderOverride {
                flag: flag.to_owned(),
                target,
                policy,
                render_key: value_of(&source.render_key),
            });
        }
    }
}

fn policy_of(
    report: &mut FileReport<'_>,
    field: &Option<Located<String>>,
    name: &str,
    allowed: &[RenderPolicy],
) -> Option<RenderPolicy> {
    let policy = word(field)?;
    if let Some(written) = field.as_ref().filter(|_| !allowed.contains(&policy)) {
        let message = format!("`{name}` cannot have the policy `{}`", written.value);
        let names: Vec<String> = allowed.iter().map(word_of).collect();
        let instead = format!("one of {}", quoted_list(names.iter().map(String::as_str)));
        report.error(written.position, message, instead);
    }
    Some(policy)
}

/// The names for a message, without those that `mcp.*` covers.
fn overridable_names() -> String {
    let names = OVERRIDABLE.iter().map(|(name, ..)| *name);
    quoted_list(names.filter(|name| *name == "mcp.*" || !name.starts_with("mcp.")))
}

/// What a key of the file covers, and the policies it may have.
fn targets(
    report: &mut FileReport<'_>,
    name: &Located<String>,
    context: &OverrideContext<'_>,
) -> Option<(Vec<OverrideTarget>, &'static [RenderPolicy])> {
    let written = one_line(&name.value);
    if context.statuses.registry.get(&name.value).is_some() {
        return Some((vec![OverrideTarget::Status(name.value.clone())], ANY));
    }
    if let Some((_, types)) = OVERRIDABLE.iter().find(|(known, _)| *known == name.value) {
        let types = types
            .iter()
            .map(|event_type| OverrideTarget::Type(*event_type));
        let allowed = match name.value == TEXT_DELTA {
            true => FORWARD_OR_BATCH,
            false => FORWARD_OR_SUPPRESS,
        };
        return Some((types.collect(), allowed));
    }
    if name.value.parse::<EventType>().is_ok() {
        let message = format!("`{written}` cannot be overridden");
        let instead = format!("a status id, or one of {}", overridable_names());
        report.error(name.position, message, instead);
        return None;
    }
    if context.agents.names.contains(&name.value) {
        let message =
            format!("`{written}` is a sub-agent, and overrides are for status ids and event types");
        report.error(name.position, message, "the status ids that it emits");
        return None;
    }
    if context.statuses.known_names.incomplete {
        return None;
    }
    let names = context
        .statuses
        .known_names
        .iter()
        .chain(OVERRIDABLE.map(|(name, ..)| name));
    let message = format!("unknown status id or event type `{written}`");
    let instead = format!("a status id, or one of {}", overridable_names());
    let (message, instead) = did_you_mean(message, &name.value, names, instead);
    report.error(name.position, message, instead);
    None
}
