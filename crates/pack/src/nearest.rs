//! The known name that was probably meant.

/// Names told to a person in one list.
const TOLD_MAX: usize = 16;

/// The nearest of the known names, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may differ: more is another word.
    let allowed = (name.chars().count() / 3).max(1);
    let known: Vec<&str> = known.into_iter().collect();
    let typo = known
        .iter()
        .map(|known| (distance(name, known), *known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known);
    typo.or_else(|| known.into_iter().find(|known| is_end(name, known)))
}

/// Whether a name is a longer one cut short: `timeout` of `timeout_ms`, `policy` of
/// `default_policy`.
fn is_end(name: &str, known: &str) -> bool {
    let rest = known
        .strip_prefix(name)
        .map(|rest| rest.starts_with('_'))
        .or_else(|| known.strip_suffix(name).map(|rest| rest.ends_with('_')));
    name.len() > 3 && rest == Some(true)
}

/// Letters to put in, take out, change or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Names have at most 48 letters; what is far longer is no typo of one.
    if a.len().abs_diff(b.len()) > 16 || a.len().min(b.len()) > 128 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Names in a row: `` `a`, `b` ``.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut told: Vec<String> = names
        .by_ref()
        .take(TOLD_MAX)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.next().is_some() {
        told.push("…".to_owned());
    }
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found() {
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
            assert_eq!(nearest(name, known), meant, "{name}");
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
        let told = listed(names.iter().map(String::as_str));
        assert!(told.starts_with("`n0`, `n1`, "), "{told}");
        assert!(told.ends_with("`n15`, …"), "{told}");
        assert_eq!(listed(["one"]), "`one`");
    }
}
