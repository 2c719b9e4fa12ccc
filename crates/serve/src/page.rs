//! The live page at `/`: embedded files, joined at start into one document with no build step. Its
//! script and style are allowed by their hashes alone, so nothing that a model says can run.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

const MARKUP: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");

/// The parts of the script, in the order in which they run: they share one scope, and only the last
/// starts anything.
const SCRIPTS: &[&str] = &[
    include_str!("page/state.js"),
    include_str!("page/text.js"),
    include_str!("page/scroll.js"),
    include_str!("page/access.js"),
    include_str!("page/conversation.js"),
    include_str!("page/approvals.js"),
    include_str!("page/ending.js"),
    include_str!("page/events.js"),
    include_str!("page/history.js"),
    include_str!("page/connection.js"),
    include_str!("page/controls.js"),
];

static HTML: LazyLock<String> = LazyLock::new(|| {
    let style = format!("<style>\n{STYLE}</style>");
    let script = format!("<script>\n{}</script>", SCRIPTS.concat());
    MARKUP
        .replacen("<style></style>", &style, 1)
        .replacen("<script></script>", &script, 1)
});

static POLICY: LazyLock<String> = LazyLock::new(|| policy(&HTML));

/// The route of the page, for any state.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(page))
}

async fn page() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        // A page of another version than the server would misread it.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, HTML.as_str())
}

/// The content security policy that allows the scripts and styles of `html` and no others.
pub(crate) fn policy(html: &str) -> String {
    let allowed = |tag| {
        let hashes: Vec<String> = inline(html, tag)
            .map(|text| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text))))
            .collect();
        if hashes.is_empty() {
            "'none'".to_owned()
        } else {
            hashes.join(" ")
        }
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        allowed("script"),
        allowed("style"),
    )
}

/// The content of each `<tag>…</tag>`.
fn inline<'a>(html: &'a str, tag: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut remaining = html;
    std::iter::from_fn(move || {
        let (_, after) = remaining.split_once(&open)?;
        let (inside, after) = after.split_once(&close)?;
        remaining = after;
        Some(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // G10
    #[test]
    fn policy_allows_one_script_and_style_by_hash() {
        assert_eq!(inline(&HTML, "script").count(), 1);
        assert_eq!(inline(&HTML, "style").count(), 1);
        let policy = policy("<style>a</style><script>b</script>");
        assert_eq!(
            policy,
            "default-src 'none'; \
             script-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='; \
             style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        assert!(!policy.contains("unsafe"));
        let silent = super::policy("<style>a</style>");
        assert!(silent.contains("script-src 'none';"), "{silent}");
    }

    // G10
    #[test]
    fn page_never_makes_html_from_text() {
        for risky in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "style=\"",
            "onclick=",
            "http://",
            "https://",
            "src=",
        ] {
            assert!(!HTML.contains(risky), "{risky}");
        }
    }

    #[test]
    fn page_is_small_files_and_small_as_a_whole() {
        // A part is read in one sitting; beyond the whole it wants a build step.
        for part in SCRIPTS.iter().chain([&MARKUP, &STYLE]) {
            let lines = part.lines().count();
            assert!(lines <= 150, "{lines} lines: {part:.80}");
        }
        assert!(HTML.lines().count() <= 1_100);
    }
}
