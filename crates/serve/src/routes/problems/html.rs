//! The pages: small, without a script, with nothing from elsewhere.

use std::fmt::{self, Display, Write as _};

use turnwire_wire::problem::help::{Description, List, Retry};

const STYLE: &str = include_str!("page.css");

/// Text that is shown as it is, whatever it holds.
struct Shown<'a>(&'a str);

impl Display for Shown<'_> {
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

/// Sentences, with what stands between backticks as code.
struct Prose<'a>(&'a str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split('`').enumerate().try_for_each(|(at, part)| {
            if at % 2 == 0 {
                write!(f, "{}", Shown(part))
            } else {
                write!(f, "<code>{}</code>", Shown(part))
            }
        })
    }
}

/// All types of problems in one table.
pub(super) fn list(list: &List) -> String {
    let mut rows = String::new();
    for one in &list.problems {
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td><a href=\"{}\"><code>{}</code></a></td><td>{}</td></tr>",
            one.status,
            Shown(&one.kind),
            Shown(&one.code),
            Shown(&one.title),
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

/// One type of problem.
pub(super) fn one(one: &Description) -> String {
    let example = serde_json::to_string_pretty(&one.example).expect("a problem is plain data");
    let retry = match one.retry {
        Retry::No => "No: the same request fails again.",
        Retry::AfterChange => "Only after the cause is gone.",
        Retry::Later => "Yes: after the time in Retry-After, else a little longer each time.",
    };
    let mut body = format!(
        "<h1>{}</h1>\n<p class=\"soft\"><code>{}</code>, status {}</p>\n",
        Shown(&one.title),
        Shown(&one.code),
        one.status,
    );
    for (title, text) in [
        ("What it means", one.meaning.as_str()),
        ("When it happens", &one.when),
        ("What to do", &one.what_to_do),
        ("Whether to try again", retry),
    ] {
        let _ = writeln!(body, "<h2>{title}</h2>\n<p>{}</p>", Prose(text));
    }
    let _ = write!(body, "<h2>An example</h2>\n<pre>{}</pre>", Shown(&example));
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
        Shown(title),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_in_html() {
        let shown = Shown("<b a=\"1\">&</b>").to_string();
        assert_eq!(shown, "&lt;b a=&quot;1&quot;&gt;&amp;&lt;/b&gt;");
        let prose = Prose("See `a<b` there.").to_string();
        assert_eq!(prose, "See <code>a&lt;b</code> there.");
    }
}
