//! Mistakes in the status registry, and in what is emitted.

use super::*;

// S1-065
#[test]
fn status_without_a_field_is_refused() {
    table(&[
        (
            Swap(
                "platform/status_events.yaml",
                "- id: looking_back\n  description",
                "- description",
            ),
            &[
                "platform/status_events.yaml:1:3: error: `id` is missing; write: `id: …` (the status id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "  description: Somebody reads the history.\n",
                "",
            ),
            &[
                "platform/status_events.yaml:1:3: error: `description` is missing; write: `description: …` (when the status is emitted)",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "  default_render_key: status.looking_back\n",
                "",
            ),
            &[
                "platform/status_events.yaml:1:3: error: `default_render_key` is missing; write: `default_render_key: …` (the key of the status text in the locale files)",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "  default_policy: transform\n",
                "",
            ),
            &[
                "platform/status_events.yaml:1:3: error: `default_policy` is missing; write: `default_policy: …` with one of `forward`, `transform`, `suppress`, `batch`",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "  emitter_subagents: [shop, points]\n",
                "",
            ),
            &[
                "platform/status_events.yaml:1:3: error: `emitter_subagents` is missing; write: `emitter_subagents: …` (the sub-agents that may emit the status, at least one)",
            ],
        ),
        (
            Swap("platform/status_events.yaml", "  lifecycle: active\n", ""),
            &[
                "platform/status_events.yaml:1:3: error: `lifecycle` is missing; write: `lifecycle: …` with one of `active`, `deprecated`",
            ],
        ),
    ]);
}

// S1-065
#[test]
fn unknown_policy_or_lifecycle_is_refused() {
    table(&[
        (
            Swap(
                "platform/status_events.yaml",
                "default_policy: transform",
                "default_policy: tranform",
            ),
            &[
                "platform/status_events.yaml:4:19: error: unknown default_policy `tranform`, did you mean `transform`?",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "default_policy: transform",
                "default_policy: show",
            ),
            &[
                "platform/status_events.yaml:4:19: error: unknown default_policy `show`; write: one of `forward`, `transform`, `suppress`, `batch`",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "lifecycle: active",
                "lifecycle: retired",
            ),
            &[
                "platform/status_events.yaml:6:14: error: unknown lifecycle `retired`; write: one of `active`, `deprecated`",
            ],
        ),
        (
            Swap(
                "verticals/shop/status_events.yaml",
                "id: old_search",
                "id: Old Search",
            ),
            &[
                "verticals/shop/status_events.yaml:7:7: error: `Old Search` is not a valid id; write: `old_search` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
    ]);
}

// S1-065
#[test]
fn unknown_emitter_or_missing_note_is_refused() {
    table(&[
        (
            Swap(
                "verticals/shop/status_events.yaml",
                "  note: use searching_offers\n",
                "",
            ),
            &[
                "verticals/shop/status_events.yaml:7:3: error: `old_search` is deprecated and does not say why; write: `note: use … instead`",
            ],
        ),
        (
            Swap(
                "verticals/shop/status_events.yaml",
                "emitter_subagents: [shop]\n  lifecycle: deprecated",
                "emitter_subagents: []\n  lifecycle: deprecated",
            ),
            &[
                "verticals/shop/status_events.yaml:11:22: error: `emitter_subagents` is empty; write: `emitter_subagents: …` (the sub-agents that may emit the status, at least one)",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "[shop, points]",
                "[shop, points, receipts]",
            ),
            &[
                "platform/status_events.yaml:5:37: error: unknown sub-agent `receipts`; write: one of `points`, `shop`",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "[shop, points]",
                "[shop, points, point]",
            ),
            &[
                "platform/status_events.yaml:5:37: error: unknown sub-agent `point`, did you mean `points`?",
            ],
        ),
    ]);
}

// S1-067
#[test]
fn duplicate_status_id_names_both_files() {
    table(&[
        (
            Swap(
                "verticals/shop/status_events.yaml",
                "id: old_search",
                "id: looking_back",
            ),
            &[
                "verticals/shop/status_events.yaml:7:7: error: the status id `looking_back` is already in platform/status_events.yaml; write: another id, or one entry for both in platform/status_events.yaml",
            ],
        ),
        (
            Swap(
                "verticals/shop/status_events.yaml",
                "id: old_search",
                "id: searching_offers",
            ),
            &[
                "verticals/shop/status_events.yaml:7:7: error: the status id `searching_offers` is already in verticals/shop/status_events.yaml; write: another id, or no second entry",
            ],
        ),
    ]);
}

// S1-068, D-17
#[test]
fn emitted_status_must_be_registered_and_allowed() {
    table(&[
        (
            Swap(
                "verticals/shop/agent.yaml",
                "looking_back]",
                "looking_bakc]",
            ),
            &[
                "verticals/shop/agent.yaml:10:27: error: agent `shop` emits `looking_bakc`, which no status_events.yaml registers, did you mean `looking_back`?",
            ],
        ),
        (
            Swap("verticals/shop/agent.yaml", "looking_back]", "dancing]"),
            &[
                "verticals/shop/agent.yaml:10:27: error: agent `shop` emits `dancing`, which no status_events.yaml registers; write: an entry `id: dancing` with `emitter_subagents: [shop]` in verticals/shop/status_events.yaml",
            ],
        ),
        (
            Swap("verticals/shop/agent.yaml", "looking_back]", "old_search]"),
            &[
                "verticals/shop/agent.yaml:10:27: error: agent `shop` emits `old_search`, which is deprecated in verticals/shop/status_events.yaml; write: an id that is active; its note says: use searching_offers",
            ],
        ),
        (
            Swap(
                "verticals/points/agent.yaml",
                "emits: [looking_back]",
                "emits: [looking_back, searching_offers]",
            ),
            &[
                "verticals/points/agent.yaml:7:23: error: agent `points` emits `searching_offers`, but verticals/shop/status_events.yaml does not list `points` as an emitter of it; write: `emitter_subagents: [shop, points]` there, or no `searching_offers` here",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "emits: [searching_offers, looking_back]\non_cancel: discard\ntimeout_ms: 15000\ndefault_status: searching_offers",
                "emits: [looking_back]\non_cancel: discard",
            ),
            &[
                "verticals/shop/agent.yaml:9:9: error: the tool `search_offers` emits `searching_offers`, which is not in `emits`; write: `searching_offers` in `emits`, or another tool",
            ],
        ),
    ]);
}

// S1-071
#[test]
fn render_key_without_a_default_text_is_refused() {
    table(&[
        (
            Swap(
                "platform/status_events.yaml",
                "status.looking_back",
                "status.looking_forward",
            ),
            &[
                "platform/status_events.yaml:3:23: error: `status.looking_forward` has no text in `en`; write: `status.looking_forward: …` in locales/en.yaml",
            ],
        ),
        (
            Swap(
                "locales/en.yaml",
                "status.looking_back: Looking back...\n",
                "",
            ),
            &[
                "platform/status_events.yaml:3:23: error: `status.looking_back` has no text in `en`; write: `status.looking_back: …` in locales/en.yaml",
            ],
        ),
    ]);
}

// S1-076
#[test]
fn status_of_two_verticals_is_a_warning() {
    table(&[(
        Swap(
            "verticals/shop/status_events.yaml",
            "emitter_subagents: [shop]",
            "emitter_subagents: [shop, points]",
        ),
        &[
            "verticals/shop/status_events.yaml:5:29: warning: `searching_offers` is emitted by `points`, which is not of the vertical `shop`; write: the entry in platform/status_events.yaml",
        ],
    )]);
}

// S1-070
#[test]
fn unregistered_status_findings_are_marked() {
    let agent = "verticals/shop/agent.yaml";
    let cases = [
        (
            Swap(
                agent,
                "emits: [searching_offers, looking_back]",
                "emits: [searching_offers, weather]",
            ),
            1,
        ),
        (
            Swap(
                agent,
                "emits: [searching_offers, looking_back]",
                "emits: [searching_offers, old_search]",
            ),
            1,
        ),
        (
            Swap("platform/status_events.yaml", "[shop, points]", "[points]"),
            1,
        ),
        (
            Swap("tools.yaml", "status: searching_offers", "status: weather"),
            1,
        ),
        (Swap(agent, "model: big", "model: bigg"), 0),
        (
            Swap(
                "orchestrator.yaml",
                "[persona, format]",
                "[persona, fromat]",
            ),
            0,
        ),
    ];
    for (change, count) in cases {
        let report = check(&files(&[change]), &vars);
        let reported = report.findings.iter().filter(|one| one.unregistered);
        assert_eq!(reported.count(), count, "{:#?}", report.findings);
        assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    }
}

// S1-067
#[test]
fn duplicate_status_id_causes_no_other_finding() {
    table(&[(
        Swap(
            "platform/status_events.yaml",
            "id: looking_back",
            "id: searching_offers",
        ),
        &[
            "verticals/shop/status_events.yaml:1:7: error: the status id `searching_offers` is already in platform/status_events.yaml; write: another id, or one entry for both in platform/status_events.yaml",
        ],
    )]);
}

#[test]
fn misspelt_emits_does_not_blame_the_tool() {
    assert_eq!(
        reported(&[
            Swap(
                "verticals/shop/agent.yaml",
                "[searching_offers, looking_back]",
                "[searching_offer, looking_back]"
            ),
            Swap(
                "verticals/shop/agent.yaml",
                "default_status: searching_offers\n",
                ""
            ),
        ]),
        [
            "verticals/shop/agent.yaml:10:9: error: agent `shop` emits `searching_offer`, which no status_events.yaml registers, did you mean `searching_offers`?",
        ]
    );
}
