//! A time that travels inside the words of a model.
//!
//! The clock is the machine's monotonic clock, which all processes of a run share: a reader of the
//! text can compute its delay, whatever is in between.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// What a time begins with; no other word of a run has it.
const MARK: char = '~';

/// Microseconds on the machine's clock.
pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part is ever below zero on this clock.
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

/// Like [`now_us`], and never the same twice in a process.
pub fn unique_us() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = now_us();
    let next = |last: u64| Some(now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    now.max(last.unwrap_or_default() + 1)
}

/// A word that says when it is written.
pub fn word() -> String {
    format!("{MARK}{:x} ", now_us())
}

/// When the words of a text were written, one by one.
pub fn times(text: &str) -> impl Iterator<Item = u64> {
    let words = text.split(MARK).skip(1);
    words.filter_map(|word| u64::from_str_radix(word.trim_end(), 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamped_text_gives_its_write_time() {
        let before = now_us();
        let text = format!("Well: {}{}", word(), word());
        let after = now_us();
        let times: Vec<u64> = times(&text).collect();
        assert_eq!(times.len(), 2);
        assert!(times.is_sorted());
        assert!(times.iter().all(|time| (before..=after).contains(time)));
    }

    #[test]
    fn unique_times_differ_and_ascend() {
        let times: Vec<u64> = (0..1_000).map(|_| unique_us()).collect();
        assert!(times.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn unstamped_text_has_no_time() {
        assert_eq!(times("~ ~xyz and so on").count(), 0);
    }
}
