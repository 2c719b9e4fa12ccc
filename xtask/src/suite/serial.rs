//! Tests that measure time or memory, and so run one after the other while nothing else runs.

/// The tests: label of the binary, beginning of the name, why.
const SERIAL: [(&str, &str, &str); 8] = [
    (
        "e2e it",
        "engine::fanout::two_one_second_sub_agents_",
        "two sub-agents of one second each within 1.9 s",
    ),
    (
        "e2e it",
        "engine::fanout::three_at_the_cap_",
        "three sub-agents at once within 1.1 s",
    ),
    (
        "e2e it",
        "engine::cancel::cancel_request_ends_turn_",
        "a cancel ends its turn within 1 s",
    ),
    (
        "e2e it",
        "engine::cancel::disconnect_cancels_within_a_second_",
        "a client that leaves cancels within 1 s",
    ),
    (
        "e2e it",
        "session::order::tools_requested_together_",
        "tools that run at once end within 1.1 s",
    ),
    (
        "e2e it",
        "cancel::turn::cancel_while_tools_run",
        "a cancel while tools run ends within 2 s",
    ),
    (
        "e2e it",
        "models::silence::ten_megabyte_answer_",
        "the server's memory is compared before and after",
    ),
    (
        "crates/serve",
        "listen::tests::headers_are_bounded_in_bytes_and_time",
        "a slow request is answered within 2 s",
    ),
];

/// Whether a test belongs to the serial group.
pub fn is_serial(binary: &str, name: &str) -> bool {
    SERIAL
        .iter()
        .any(|(label, prefix, _)| *label == binary && name.starts_with(prefix))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_its_test_is_named() {
        let all = SERIAL.map(|(label, prefix, _)| (label, prefix));
        assert_eq!(stale(all.iter().copied()), [""; 0]);
        let first = all[0];
        let gone = stale(all[1..].iter().copied());
        assert_eq!(gone, [format!("{}: {}", first.0, first.1)]);
        assert!(is_serial(first.0, &format!("{}more", first.1)));
        assert!(!is_serial("crates/log", first.1));
    }
}
