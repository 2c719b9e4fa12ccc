//! Tests that measure time, and so run one after the other while nothing else runs.

/// The tests: label of the binary, beginning of the name, why.
const SERIAL: [(&str, &str, &str); 0] = [];

/// Whether a test belongs to the serial group.
pub fn is_serial(binary: &str, name: &str) -> bool {
    let of =
        |(label, prefix, _): &&(&str, &str, &str)| *label == binary && name.starts_with(prefix);
    SERIAL.iter().any(|entry| of(&entry))
}

/// Entries that match no test: the test was renamed or removed.
pub fn stale<'a>(tests: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let unmatched = SERIAL.iter().filter(|(label, prefix, _)| {
        !tests
            .clone()
            .any(|(binary, name)| binary == *label && name.starts_with(prefix))
    });
    unmatched
        .map(|(label, prefix, _)| format!("{label}: {prefix}"))
        .collect()
}
