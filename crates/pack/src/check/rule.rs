//! Checks `overrides.yaml`: flags that exist, things that may be shown otherwise, and how.

use turnwire_event::{EventType, RenderPolicy};

use super::manifest::Manifest;
use super::page::{Page, word, word_of};
use super::status::Statuses;
use crate::finding::{Findings, Known};
use crate::registry::{Lifecycle, Registry};
use crate::rule::{Override, Target};
use crate::source::form::Pairs;
use crate::source::text::{ChangeSource, OverridesSource};
use crate::wording::one_line;
use crate::wording::{closest_name, quoted_list};
use crate::yaml::Located;

pub(crate) const FILE: &str = "overrides.yaml";

const SHOWN_OR_NOT: &[RenderPolicy] = &[RenderPolicy::Forward, RenderPolicy::Suppress];
const AT_ONCE_OR_TOGETHER: &[RenderPolicy] = &[RenderPolicy::Forward, RenderPolicy::Batch];
const ANY: &[RenderPolicy] = &[
    RenderPolicy::Forward,
    RenderPolicy::Transform,
    RenderPolicy::Suppress,
    RenderPolicy::Batch,
];

/// A name that may stand in the file, the types it is for, and how they may be shown.
type Name = (&'static str, &'static [EventType], &'static [RenderPolicy]);

const NAMES: [Name; 10] = {
    use EventType as T;
    [
        ("text.delta", &[T::TextDelta], AT_ONCE_OR_TOGETHER),
        (
            "tool_call",
            &[T::ToolCalled, T::ToolCompleted, T::ToolFailed],
            SHOWN_OR_NOT,
        ),
        // Pairs are shown or hidden as a whole: no end without its beginning (S1-046, S1-082).
        ("data", &[T::DataLoading, T::DataLoaded], SHOWN_OR_NOT),
        ("component.rendered", &[T::ComponentRendered], SHOWN_OR_NOT),
        ("error.reported", &[T::ErrorReported], SHOWN_OR_NOT),
        (
            "mcp.*",
            &[
                T::McpListToolsStarted,
                T::McpListToolsCompleted,
                T::McpSessionStarted,
                T::McpSessionProgressed,
            ],
            SHOWN_OR_NOT,
        ),
        (
            "mcp.list_tools_started",
            &[T::McpListToolsStarted],
            SHOWN_OR_NOT,
        ),
        (
            "mcp.list_tools_completed",
            &[T::McpListToolsCompleted],
            SHOWN_OR_NOT,
        ),
        ("mcp.session_started", &[T::McpSessionStarted], SHOWN_OR_NOT),
        (
            "mcp.session_progressed",
            &[T::McpSessionProgressed],
            SHOWN_OR_NOT,
        ),
    ]
};

/// What an override may point at.
pub(crate) struct Around<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) statuses: &'a Statuses,
    pub(crate) agents: &'a Known,
}

/// The overrides, and the render keys they ask for.
pub(crate) struct Rules {
    pub(crate) overrides: Vec<Override>,
    pub(crate) keys: Vec<(String, Located<String>)>,
}

/// Checks it.
pub(crate) fn check(
    source: Option<&OverridesSource>,
    around: &Around<'_>,
    found: &mut Findings,
) -> Rules {
    let mut page = Page { file: FILE, found };
    let flags = around.manifest.known_flags();
    let mut rules = Rules {
        overrides: Vec::new(),
        keys: Vec::new(),
    };
    for (flag, changes) in source.iter().flat_map(|source| &source.0) {
        page.unknown(flag, "flag", &flags);
        of_flag(&mut page, &flag.value, changes, around, &mut rules);
    }
    rules
}

/// The render keys of statuses that are shown together with others, for some people at least.
pub(crate) fn together<'a>(registry: &'a Registry, overrides: &'a [Override]) -> Vec<&'a str> {
    let mut keys = Vec::new();
    for entry in &registry.entries {
        if entry.policy == RenderPolicy::Batch && entry.lifecycle == Lifecycle::Active {
            keys.push(entry.render_key.as_str());
        }
        let of_entry = overrides.iter().filter(|one| {
            one.policy == Some(RenderPolicy::Batch)
                && one.target == Target::Status(entry.id.clone())
        });
        keys.extend(of_entry.map(|one| one.render_key.as_deref().unwrap_or(&entry.render_key)));
    }
    keys
}

fn of_flag(
    page: &mut Page<'_>,
    flag: &str,
    changes: &Pairs<Located<ChangeSource>>,
    around: &Around<'_>,
    rules: &mut Rules,
) {
    for (name, change) in &changes.0 {
        let Some((targets, allowed)) = targets(page, name, around) else {
            continue;
        };
        let source = &change.value;
        if source.policy.is_none() && source.render_key.is_none() {
            page.error(change.position, "the override changes nothing")
                .write("`policy: …` or `render_key: …`");
        }
        let policy = policy_of(page, &source.policy, &name.value, allowed);
        if let Some(key) = &source.render_key {
            if matches!(targets[..], [Target::Status(_)]) {
                rules.keys.push((FILE.to_owned(), key.clone()));
            } else {
                let what = format!("`{}` has no text, so no `render_key`", name.value);
                page.error(key.position, what)
                    .write("`policy: …`; only status ids have a text");
            }
        }
        for target in targets {
            rules.overrides.push(Override {
                flag: flag.to_owned(),
                target,
                policy,
                render_key: source.render_key.as_ref().map(|key| key.value.clone()),
            });
        }
    }
}

fn policy_of(
    page: &mut Page<'_>,
    field: &Option<Located<String>>,
    name: &str,
    allowed: &[RenderPolicy],
) -> Option<RenderPolicy> {
    let policy = word(field)?;
    if let Some(written) = field.as_ref().filter(|_| !allowed.contains(&policy)) {
        let what = format!("`{name}` cannot have the policy `{}`", written.value);
        let names: Vec<String> = allowed.iter().map(word_of).collect();
        page.error(written.position, what).write(format!(
            "one of {}",
            quoted_list(names.iter().map(String::as_str))
        ));
    }
    Some(policy)
}

/// The names that are told to a person: those that `mcp.*` stands for are left out.
fn advised() -> String {
    let names = NAMES.iter().map(|(name, ..)| *name);
    quoted_list(names.filter(|name| *name == "mcp.*" || !name.starts_with("mcp.")))
}

/// What a key of the file is about, and how that may be shown.
fn targets(
    page: &mut Page<'_>,
    name: &Located<String>,
    around: &Around<'_>,
) -> Option<(Vec<Target>, &'static [RenderPolicy])> {
    let written = one_line(&name.value);
    if around.statuses.registry.get(&name.value).is_some() {
        return Some((vec![Target::Status(name.value.clone())], ANY));
    }
    if let Some((_, types, allowed)) = NAMES.iter().find(|(known, ..)| *known == name.value) {
        let types = types.iter().map(|one| Target::Type(*one));
        return Some((types.collect(), allowed));
    }
    if name.value.parse::<EventType>().is_ok() {
        page.error(name.position, format!("`{written}` cannot be overridden"))
            .write(format!("a status id, or one of {}", advised()));
        return None;
    }
    if around.agents.names.contains(&name.value) {
        let what =
            format!("`{written}` is a sub-agent, and overrides are for status ids and event types");
        page.error(name.position, what)
            .write("the status ids that it emits");
        return None;
    }
    if around.statuses.known.hidden {
        return None;
    }
    let statuses = || around.statuses.known.names.iter().map(String::as_str);
    let names = statuses().chain(NAMES.map(|(name, ..)| name));
    match closest_name(&name.value, names) {
        Some(meant) => {
            let what =
                format!("unknown status id or event type `{written}`, did you mean `{meant}`?");
            page.error(name.position, what);
        }
        None => page
            .error(
                name.position,
                format!("unknown status id or event type `{written}`"),
            )
            .write(format!("a status id, or one of {}", advised())),
    }
    None
}
