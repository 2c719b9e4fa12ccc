//! Cohorts and versions: the same answer for the same pack and principal, another one for
//! whatever differs.

use super::*;
use crate::check::check;
use crate::files::PackFiles;
use crate::pack::flag::FlagRollout;

fn pack_with(flags: &str, extra: &[(&str, &str, &str)]) -> Pack {
    let files = PackFiles::skeleton("corner");
    let mut pairs: Vec<(String, String)> = files
        .iter()
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect();
    for (path, text) in &mut pairs {
        if path == "pack.yaml" {
            text.push_str(flags);
        }
        for (_, from, to) in extra.iter().filter(|(file, ..)| file == path) {
            assert!(text.contains(from), "{path} has no {from}");
            *text = text.replace(from, to);
        }
    }
    let report = check(&PackFiles::from_pairs(pairs), &|_| None);
    report.pack.expect("no error")
}

const FLAGS: &str = "flags:
  ai_assistant_on: true
  ai_assistant_off: false
  ai_assistant_few: {principals: [user-42]}
  ai_assistant_half: {share: 0.5}
";

#[test]
fn flags_are_resolved_for_a_principal() {
    let pack = pack_with(FLAGS, &[]);
    let names = pack.cohort("user-42");
    assert!(names.has("ai_assistant_on") && names.has("ai_assistant_few"));
    assert!(!names.has("ai_assistant_off") && !names.has("ai_assistant_nothing"));
    assert!(!pack.cohort("user-43").has("ai_assistant_few"));
    assert_eq!(names, pack.cohort("user-42"), "nothing is drawn");
}

#[test]
fn rollout_share_is_approximate_and_differs_by_flag() {
    let flag = |name: &str, share| FeatureFlag {
        name: name.to_owned(),
        rollout: FlagRollout::Share(share),
    };
    let principals: Vec<String> = (0..2_000).map(|n| format!("user-{n}")).collect();
    let count = |flag: &FeatureFlag| principals.iter().filter(|one| flag.active(one)).count();
    let quarter = flag("ai_assistant_a", 0.25);
    assert!((400..600).contains(&count(&quarter)), "{}", count(&quarter));
    assert_eq!(count(&flag("ai_assistant_a", 0.0)), 0);
    assert_eq!(count(&flag("ai_assistant_a", 1.0)), 2_000);
    let other = flag("ai_assistant_b", 0.25);
    let both = principals
        .iter()
        .filter(|one| quarter.active(one) && other.active(one));
    assert!(
        (60..200).contains(&both.count()),
        "two flags pick different people"
    );
    // Who is in a small share stays in a larger one.
    let half = flag("ai_assistant_a", 0.5);
    assert!(
        principals
            .iter()
            .all(|one| !quarter.active(one) || half.active(one))
    );
}

// D-20
#[test]
fn cohort_is_a_digest_of_versions_and_flags() {
    let pack = pack_with(FLAGS, &[]);
    let few = pack.cohort("user-42");
    let others: Vec<String> = (0..50).map(|n| pack.cohort(&format!("a{n}")).id).collect();
    assert!(!others.contains(&few.id));
    let kinds: std::collections::BTreeSet<&String> = others.iter().collect();
    assert_eq!(
        kinds.len(),
        2,
        "only the half makes a difference among them"
    );
    let agent = (
        "verticals/helper/agent.yaml",
        "version: \"1\"",
        "version: \"2\"",
    );
    assert_ne!(pack_with(FLAGS, &[agent]).cohort("user-42").id, few.id);
    let entry = ("verticals/helper/status_events.yaml", "transform", "batch");
    assert_ne!(pack_with(FLAGS, &[entry]).cohort("user-42").id, few.id);
}

// S2-078
#[test]
fn versions_change_with_their_content() {
    let versions = |extra: &[(&str, &str, &str)]| {
        let pack = pack_with("", extra);
        pack.versions(&pack.cohort("user-1"))
    };
    let first = versions(&[]);
    assert_eq!(first, versions(&[]));
    let (name, digest) = first
        .agent_definition
        .split_once('+')
        .expect("a digest after +");
    assert_eq!(name, "corner@0.1.0");
    assert!(
        digest.len() == 8 && digest.bytes().all(|b| b.is_ascii_hexdigit()),
        "{digest}"
    );

    let edited = versions(&[("orchestrator.yaml", "Speaks with", "Talks to")]);
    assert_ne!(edited.agent_definition, first.agent_definition);
    assert_eq!(
        (edited.prompt, edited.registry),
        (first.prompt.clone(), first.registry.clone())
    );

    let edited = versions(&[("prompts/helper.md", "never guess", "do not guess")]);
    assert_ne!(edited.prompt, first.prompt);
    assert_eq!(edited.agent_definition, first.agent_definition);

    let edited = versions(&[("verticals/helper/status_events.yaml", "transform", "batch")]);
    assert_ne!(edited.registry, first.registry);
    assert_ne!(edited.cohort, first.cohort);
}

#[test]
fn agents_tools_and_models_are_found_by_name() {
    let pack = pack_with("", &[]);
    assert_eq!(pack.model("default"), "scripted:corner");
    assert_eq!(pack.model("other:model"), "other:model");
    assert!(pack.agent("helper").is_some() && pack.agent("orchestrator").is_none());
    assert!(pack.tool("clock").is_some() && pack.tool("clocks").is_none());
}

// S1-133
#[test]
fn experiment_arm_names_the_partial_flags_that_are_on() {
    let arm = |flags: &str, principal: &str| {
        let pack = pack_with(flags, &[]);
        pack.experiment_arm(&pack.cohort(principal))
    };
    let everybody = "flags: {ai_assistant_a: true, ai_assistant_b: false}";
    assert_eq!(arm(everybody, "user-42"), "");
    let some = "flags: {ai_assistant_b: {principals: [user-42]}, ai_assistant_a: {share: 1.0}, ai_assistant_c: true}";
    assert_eq!(arm(some, "user-42"), "ai_assistant_a+ai_assistant_b");
    assert_eq!(arm(some, "user-1"), "ai_assistant_a");
    let few = "flags: {ai_assistant_b: {principals: [user-42]}}";
    assert_eq!(arm(few, "user-1"), "control");
    let many: Vec<String> = (0..7)
        .map(|number| format!("ai_assistant_{number}: {{share: 0.5}}"))
        .collect();
    assert_eq!(
        arm(&format!("flags: {{{}}}", many.join(", ")), "user-1"),
        "many"
    );
}
