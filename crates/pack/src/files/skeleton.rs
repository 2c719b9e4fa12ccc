//! A small complete pack to begin with: an orchestrator, one sub-agent with one tool and one
//! status, and a script, so that it runs before a model is chosen.

/// Path, text; `{name}` becomes the pack's name.
const FILES: [(&str, &str); 10] = [
    ("pack.yaml", include_str!("skeleton/pack.yaml")),
    (
        "orchestrator.yaml",
        include_str!("skeleton/orchestrator.yaml"),
    ),
    (
        "verticals/helper/agent.yaml",
        include_str!("skeleton/agent.yaml"),
    ),
    (
        "verticals/helper/status_events.yaml",
        include_str!("skeleton/status_events.yaml"),
    ),
    ("tools.yaml", include_str!("skeleton/tools.yaml")),
    ("prompts/persona.md", include_str!("skeleton/persona.md")),
    ("prompts/helper.md", include_str!("skeleton/helper.md")),
    ("locales/en.yaml", include_str!("skeleton/en.yaml")),
    ("scripts/{name}.yaml", include_str!("skeleton/script.yaml")),
    ("README.md", include_str!("skeleton/README.md")),
];

/// The files of a pack of this name.
pub(super) fn files(name: &str) -> impl Iterator<Item = (String, String)> {
    let fill = move |text: &str| text.replace("{name}", name);
    FILES
        .into_iter()
        .map(move |(path, text)| (fill(path), fill(text)))
}
