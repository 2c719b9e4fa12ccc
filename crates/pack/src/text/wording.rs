//! Words for messages: the name that was probably meant, lists of names, and texts on one line.

/// Names in one list of a message.
const LIST_MAX: usize = 16;
/// Characters of a text that a message repeats.
const ONE_LINE_MAX: usize = 80;
/// A pair of names longer than this is not compared letter by letter: ids have at most 48 letters.
const COMPARED_CHARS_MAX: usize = 128;

/// The candidate that was probably meant by `name`, if one is near enough.
pub fn closest_name<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = name.chars().count();
    // A third of the letters may differ: more is another word.
    let allowed = (length / 3).max(1);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let typo = candidates
        .iter()
        .filter(|candidate| {
            let other = candidate.chars().count();
            length.abs_diff(other) <= allowed && length.min(other) <= COMPARED_CHARS_MAX
        })
        .map(|candidate| (strsim::osa_distance(name, candidate), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    typo.or_else(|| {
        let mut candidates = candidates.into_iter();
        candidates.find(|candidate| is_part(name, candidate))
    })
}

/// A sentence about the unknown `name` and what to write: the candidate that was probably meant, as
/// part of the sentence, or else `instead`.
pub(crate) fn did_you_mean<'a>(
    message: String,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    instead: impl Into<String>,
) -> (String, String) {
    match closest_name(name, candidates) {
        Some(meant) => (format!("{message}, did you mean `{meant}`?"), String::new()),
        None => (message, instead.into()),
    }
}

/// True if `name` is the first or last words of `candidate`: `timeout` of `timeout_ms`, `policy` of
/// `default_policy`.
fn is_part(name: &str, candidate: &str) -> bool {
    let first = candidate
        .strip_prefix(name)
        .is_some_and(|end| end.starts_with('_'));
    let last = candidate
        .strip_suffix(name)
        .is_some_and(|start| start.ends_with('_'));
    name.len() > 3 && (first || last)
}

/// Names as a list: `` `a`, `b` ``, cut after 16.
pub fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let first = names.by_ref().take(LIST_MAX);
    let mut quoted: Vec<String> = first.map(|name| format!("`{name}`")).collect();
    if names.next().is_some() {
        quoted.push("…".to_owned());
    }
    quoted.join(", ")
}

/// The beginning of `text` with control characters escaped, fit for one line of a message.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            _ if at == ONE_LINE_MAX => {
                line.push('…');
                break;
            }
            c if c.is_control() => line.extend(c.escape_debug()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_or_part_of_a_name_finds_the_name() {
        let known = ["search_offers", "render_offer_list", "clock"];
        let cases = [
            ("serch_offers", Some("search_offers")),
            ("search_offer", Some("search_offers")),
            ("clcok", Some("clock")),
            ("clocks", Some("clock")),
            ("search", Some("search_offers")),
            ("offer_list", Some("render_offer_list")),
            ("teleport", None),
            ("", None),
        ];
        for (name, meant) in cases {
            assert_eq!(closest_name(name, known), meant, "{name}");
        }
    }

    #[test]
    fn long_list_is_cut() {
        let names: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
        let list = quoted_list(names.iter().map(String::as_str));
        assert!(list.starts_with("`n0`, `n1`, "), "{list}");
        assert!(list.ends_with("`n15`, …"), "{list}");
        assert_eq!(quoted_list(["one"]), "`one`");
    }

    #[test]
    fn long_text_and_control_characters_stay_on_one_line() {
        assert_eq!(one_line("a\nb"), "a\\nb");
        assert_eq!(one_line(&"x".repeat(80)), "x".repeat(80));
        assert_eq!(one_line(&"x".repeat(81)), format!("{}…", "x".repeat(80)));
    }
}
