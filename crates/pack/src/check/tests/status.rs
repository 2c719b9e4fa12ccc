//! Mistakes in the status registry, and in what is emitted.

use super::*;

#[test]
fn s1_065_an_entry_has_all_its_fields() {
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
                "platform/status_events.yaml:1:3: error: `emitter_subagents` is missing; write: `emitter_subagents: …` (the sub-agents that may emit the status)",
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

#[test]
fn s1_065_the_words_of_an_entry_are_known_ones() {
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

#[test]
fn s1_065_emitters_exist_and_what_is_deprecated_has_a_note() {
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
                "verticals/shop/status_events.yaml:11:22: error: nobody may emit `old_search`; write: the ids of the sub-agents that emit it, or no entry",
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

#[test]
fn s1_067_duplicate_ids_name_both_files() {
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

#[test]
fn s1_068_what_is_emitted_is_registered_active_and_allowed() {
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

#[test]
fn s1_071_a_render_key_has_a_text_in_the_default_language() {
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

#[test]
fn s1_076_an_id_of_two_verticals_belongs_to_the_platform() {
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

#[test]
fn s1_070_findings_about_ids_that_may_not_be_emitted_can_be_told_apart() {
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
        let told = report.findings.iter().filter(|one| one.unregistered);
        assert_eq!(told.count(), count, "{:#?}", report.findings);
        assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    }
}

#[test]
fn s1_067_a_second_entry_of_an_id_is_told_and_nothing_that_follows_from_it() {
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
fn a_misspelt_id_in_emits_is_not_held_against_the_tool_that_emits_it() {
    assert_eq!(
        told(&[
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
