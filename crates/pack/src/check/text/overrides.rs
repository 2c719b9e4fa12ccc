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

/// The keys, by the names that frames have on the chat wire. All may be forwarded or suppressed, but
/// for `text`.
const OVERRIDABLE: [OverridableName; 9] = {
    use EventType as T;
    [
        (TEXT, &[T::TextDelta]),
        (
            "tool_call",
            &[T::ToolCalled, T::ToolCompleted, T::ToolFailed],
        ),
        // Pairs of events are shown or hidden together (S1-046, S1-082).
        ("data_loading", &[T::DataLoading, T::DataLoaded]),
        ("component", &[T::ComponentRendered]),
        (ALL_OF_MCP, &MCP),
        ("mcp_list_tools_start", &[T::McpListToolsStarted]),
        ("mcp_list_tools_completed", &[T::McpListToolsCompleted]),
        ("mcp_session_start", &[T::McpSessionStarted]),
        ("mcp_session_progress", &[T::McpSessionProgressed]),
    ]
};

/// The frames that cannot be overridden: name, why, what to write; empty for the list of keys.
const FIXED: [(&str, &str, &str); 11] = [
    (
        "tool_completed",
        "it is shown or hidden with its `tool_call`",
        "`tool_call`, which covers both",
    ),
    (
        "data_loaded",
        "it is shown or hidden with its `data_loading`",
        "`data_loading`, which covers both",
    ),
    (
        "status",
        "each status has a policy of its own",
        "the status id",
    ),
    (
        "error",
        "clients and their telemetry learn of a failure from it",
        "",
    ),
    ("thinking", PART_OF_MESSAGE, ""),
    ("reasoning", PART_OF_MESSAGE, ""),
    ("response_id", PART_OF_START, ""),
    ("episode", PART_OF_START, ""),
    ("usage", PART_OF_END, ""),
    ("completed", PART_OF_END, ""),
    ("cancelled", PART_OF_END, ""),
];
const PART_OF_MESSAGE: &str = "it is part of the message, which every client gets whole";
const PART_OF_START: &str = "it belongs to the start of a turn";
const PART_OF_END: &str = "it belongs to the end of a turn";

/// The text of an answer, which is never suppressed.
const TEXT: &str = "text";
/// All frames about MCP servers.
const ALL_OF_MCP: &str = "mcp_*";
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

/// The names for a message, without those that `mcp_*` covers.
fn overridable_names() -> String {
    let names = OVERRIDABLE.iter().map(|(name, ..)| *name);
    quoted_list(names.filter(|name| *name == ALL_OF_MCP || !name.starts_with("mcp_")))
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
        let allowed = match name.value == TEXT {
            true => FORWARD_OR_BATCH,
            false => FORWARD_OR_SUPPRESS,
        };
        return Some((types.collect(), allowed));
    }
    if let Some((_, why, instead)) = FIXED.iter().find(|(fixed, ..)| *fixed == name.value) {
        let message = format!("`{written}` cannot be overridden: {why}");
        let instead = match instead.is_empty() {
            true => format!("a status id, or one of {}", overridable_names()),
            false => (*instead).to_owned(),
        };
        report.error(name.position, message, instead);
        return None;
    }
    if let Ok(event_type) = name.value.parse::<EventType>() {
        let mut keys = OVERRIDABLE.iter();
        let key = keys.rfind(|(_, types)| types.contains(&event_type));
        let (message, instead) = match key {
            Some((key, _)) => (
                format!("`{written}` is the name in the log, did you mean `{key}`?"),
                String::new(),
            ),
            None => (
                format!("`{written}` cannot be overridden"),
                format!("a status id, or one of {}", overridable_names()),
            ),
        };
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
