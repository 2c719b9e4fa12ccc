//! The HTML pages of problems: without scripts and external resources.

use std::fmt::{self, Display, Write as _};

use turnwire_wire::problem::help::{ProblemDescription, ProblemList, RetryAdvice};

const STYLE: &str = include_str!("page.css");

/// Text that is escaped for HTML.
struct EscapedText<'a>(&'a str);

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            c => f.write_char(c),
        })
    }
}

/// Sentences whose parts between backticks are shown as code.
struct HtmlProse<'a>(&'a str);

impl Display for HtmlProse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split('`').enumerate().try_for_each(|(at, part)| {
            if at % 2 == 0 {
                write!(f, "{}", EscapedText(part))
            } else {
                write!(f, "<code>{}</code>", EscapedText(part))
            }
        })
    }
}

/// The page of a [`ProblemList`].
pub(super) fn list(list: &ProblemList) -> String {
    let mut rows = String::new();
    for one in &list.problems {
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td><a href=\"{}\"><code>{}</code></a></td><td>{}</td></tr>",
            one.status,
            EscapedText(&one.kind),
            EscapedText(&one.code),
            EscapedText(&one.title),
        );
    }
    page(
        "Problems",
        &format!(
            "<h1>Problems</h1>\n\
             <p class=\"soft\">Every error answer is <code>application/problem+json</code> with one \
             of these codes.</p>\n\
             <table>\n<tr><th>Status</th><th>Code</th><th>Title</th></tr>\n{rows}</table>"
        ),
    )
}

/// The page of a [`ProblemDescription`].
pub(super) fn one(one: &ProblemDescription) -> String {
    let example = serde_json::to_string_pretty(&one.example).expect("a problem is plain data");
    let retry = match one.retry {
        RetryAdvice::No => "No: the same request fails again.",
        RetryAdvice::AfterChange => "Only after the cause is gone.",
        RetryAdvice::Later => "Yes: after the time in Retry-After, else a little longer each time.",
    };
    let mut body = format!(
        "<h1>{}</h1>\n<p class=\"soft\"><code>{}</code>, status {}</p>\n",
        EscapedText(&one.title),
        EscapedText(&one.code),
        one.status,
    );
    for (title, text) in [
        ("What it means", one.meaning.as_str()),
        ("When it happens", &one.when),
        ("What to do", &one.what_to_do),
        ("Whether to try again", retry),
    ] {
        let _ = writeln!(body, "<h2>{title}</h2>\n<p>{}</p>", HtmlProse(text));
    }
    let _ = write!(
        body,
        "<h2>An example</h2>\n<pre>{}</pre>",
        EscapedText(&example)
    );
    page(&one.title, &body)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} · Turnwire</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style>\n</head>\n<body>\n\
         <header><a href=\"/\">Turnwire</a> · <a href=\"/problems\">Problems</a></header>\n\
         <main>\n{body}\n</main>\n</body>\n</html>\n",
        EscapedText(title),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_in_html() {
        let shown = EscapedText("<b a=\"1\">&</b>").to_string();
        assert_eq!(shown, "&lt;b a=&quot;1&quot;&gt;&amp;&lt;/b&gt;");
        let prose = HtmlProse("See `a<b` there.").to_string();
        assert_eq!(prose, "See <code>a&lt;b</code> there.");
    }
}
