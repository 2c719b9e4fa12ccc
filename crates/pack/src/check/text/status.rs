//! Checks the fragments of the status registry and merges them.

use std::collections::BTreeMap;

use turnwire_event::RenderPolicy;

use crate::check::folder::{PLATFORM, ParsedFile};
use crate::check::report::{FileReport, is_id, text_of, value_of, values, word};
use crate::finding::{Findings, KnownNames};
use crate::pack::status::{RegisteredStatus, StatusLifecycle, StatusRegistry};
use crate::source::status::EntrySource;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The number of ids above which a warning is given (S1-077).
const IDS_SOFT_MAX: usize = 50;

/// The merged [`StatusRegistry`], and what later checks need of it.
pub(crate) struct CheckedStatuses {
    pub(crate) registry: StatusRegistry,
    /// The ids; incomplete if a fragment is broken.
    pub(crate) known_names: KnownNames,
    /// The uses of render keys: file, key with its position.
    pub(crate) keys: Vec<(String, Located<String>)>,
}

/// Checks and merges the fragments; `agents` may emit statuses, and `verticals` maps sub-agents to their
/// verticals.
pub(crate) fn check(
    fragments: &[ParsedFile<Vec<Located<EntrySource>>>],
    agents: &KnownNames,
    verticals: &BTreeMap<String, String>,
    findings: &mut Findings,
) -> CheckedStatuses {
    let mut entries: Vec<RegisteredStatus> = Vec::new();
    let mut keys = Vec::new();
    let mut report_duplicate = false;
    for fragment in fragments {
        let mut report = FileReport::new(&fragment.file, findings);
        for source in fragment.source.iter().flatten() {
            let entry = entry(&mut report, source);
            if let Some(key) = &source.value.default_render_key {
                keys.push((fragment.file.clone(), key.clone()));
            }
            for emitter in emitters(source) {
                report.unknown(emitter, "sub-agent", agents);
            }
            if !fragment.name.is_empty() {
                check_vertical(&mut report, source, &fragment.name, verticals);
            }
            let position = source
                .value
                .id
                .as_ref()
                .map_or(source.position, |id| id.position);
            match entries.iter_mut().find(|other| other.id == entry.id) {
                Some(first) if !entry.id.is_empty() => {
                    let message = format!(
                        "the status id `{}` is already in {}",
                        entry.id, first.fragment
                    );
                    let instead = if first.fragment == fragment.file {
                        "another id, or no second entry".to_owned()
                    } else {
                        format!("another id, or one entry for both in {PLATFORM}")
                    };
                    report.error(position, message, instead);
                    // Another file may mean either of the two.
                    first.emitters.extend(entry.emitters);
                    report_duplicate = true;
                }
                Some(_) | None => entries.push(entry),
            }
        }
    }
    if entries.len() > IDS_SOFT_MAX {
        let message = format!(
            "{} status ids; about {IDS_SOFT_MAX} is plenty",
            entries.len()
        );
        let file = fragments
            .first()
            .map_or(PLATFORM, |first| first.file.as_str());
        findings.warning(file, TextPosition::TOP, message, "fewer, more general ids");
    }
    // An entry with an invalid or duplicate id may be the one that another file means.
    let incomplete = report_duplicate
        || fragments.iter().any(|fragment| fragment.source.is_none())
        || entries.iter().any(|entry| !is_id(&entry.id));
    CheckedStatuses {
        known_names: KnownNames {
            names: entries.iter().map(|entry| entry.id.clone()).collect(),
            incomplete,
        },
        registry: StatusRegistry::new(entries),
        keys,
    }
}

fn emitters(source: &Located<EntrySource>) -> &[Located<String>] {
    let listed = source.value.emitter_subagents.as_ref();
    listed.map_or(&[], |emitters| emitters.value.as_slice())
}

fn entry(report: &mut FileReport<'_>, source: &Located<EntrySource>) -> RegisteredStatus {
    let (home, source) = (source.position, &source.value);
    let id = text_of(&source.id);
    let emitters = source.emitter_subagents.as_ref();
    if let Some(emitters) = emitters {
        report.check_unique(&emitters.value, "emitter_subagents");
    }
    let lifecycle = word(&source.lifecycle);
    let note = value_of(&source.note);
    if lifecycle == Some(StatusLifecycle::Deprecated)
        && note.as_ref().is_none_or(|note| note.trim().is_empty())
    {
        let message = format!("`{}` is deprecated and does not say why", one_line(&id));
        let instead = "`note: use … instead`";
        report.error(home, message, instead);
    }
    RegisteredStatus {
        description: text_of(&source.description),
        id,
        render_key: text_of(&source.default_render_key),
        policy: word(&source.default_policy).unwrap_or(RenderPolicy::Suppress),
        emitters: emitters.map(|list| values(&list.value)).unwrap_or_default(),
        lifecycle: lifecycle.unwrap_or(StatusLifecycle::Active),
        note,
        fragment: report.file.to_owned(),
    }
}

/// Warns of an id that several verticals emit: it belongs to the platform (S1-076).
fn check_vertical(
    report: &mut FileReport<'_>,
    source: &Located<EntrySource>,
    vertical: &str,
    verticals: &BTreeMap<String, String>,
) {
    let id = source.value.id.as_ref().map_or("", |id| id.value.as_str());
    let foreign_emitter = emitters(source).iter().find(|emitter| {
        verticals
            .get(&emitter.value)
            .is_some_and(|of| of != vertical)
    });
    if let Some(foreign_emitter) = foreign_emitter {
        let message = format!(
            "`{}` is emitted by `{}`, which is not of the vertical `{vertical}`",
            one_line(id),
            foreign_emitter.value
        );
        let instead = format!("the entry in {PLATFORM}");
        report.warning(foreign_emitter.position, message, instead);
    }
}
