//! How large a pattern is when its repeats are written out, and what it costs to try it.

/// Of a class of Unicode, which is a table.
const CLASS: u64 = 500;
/// Of a pattern that may go back, at least: it may try many ways for each letter.
const WAYS: u64 = 64;

/// A pattern as a cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    pub(super) size: u64,
    goes_back: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        Self {
            size: size(pattern),
            goes_back: goes_back(pattern),
        }
    }

    /// Steps that trying it on `text` takes.
    pub(super) fn cost(&self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        match self.goes_back {
            true => bytes.saturating_mul(self.size.max(WAYS)),
            false => bytes.saturating_mul(self.size) / 8,
        }
    }
}

/// Parts of `pattern`, each as often as it is repeated. Never less than one.
pub(super) fn size(pattern: &str) -> u64 {
    let mut chars = pattern.chars().peekable();
    // What stands before the groups that are open: the sum so far and the last part of it.
    let mut open = Vec::new();
    let (mut sum, mut last) = (0_u64, 0_u64);
    let mut in_class = false;
    while let Some(next) = chars.next() {
        let part = match next {
            '\\' => match chars.next() {
                Some('p' | 'P') => {
                    if chars.next_if_eq(&'{').is_some() {
                        chars.by_ref().find(|&c| c == '}');
                    }
                    CLASS
                }
                _ => 1,
            },
            ']' if in_class => {
                in_class = false;
                continue;
            }
            '[' if !in_class => {
                in_class = true;
                1
            }
            _ if in_class => 0,
            '(' => {
                open.push(sum.saturating_add(last));
                (sum, last) = (0, 1);
                continue;
            }
            ')' => {
                last = last.saturating_add(sum);
                sum = open.pop().unwrap_or(0);
                continue;
            }
            '{' => {
                let mut most = 0_u64;
                let mut number = 0_u64;
                while let Some(next) = chars.next_if(|c| c.is_ascii_digit() || *c == ',') {
                    match next.to_digit(10) {
                        Some(digit) => {
                            number = number.saturating_mul(10).saturating_add(digit.into());
                        }
                        None => number = 0,
                    }
                    most = most.max(number);
                }
                if chars.next_if_eq(&'}').is_some() {
                    last = last.saturating_mul(most.max(1));
                }
                continue;
            }
            _ => 1,
        };
        if in_class && next != '[' {
            last = last.saturating_add(part);
        } else {
            sum = sum.saturating_add(last);
            last = part;
        }
    }
    let open = open.into_iter().fold(0, u64::saturating_add);
    sum.saturating_add(last).saturating_add(open).max(1)
}

/// Whether a pattern may need what goes back: a look ahead or behind, or what a group held.
fn goes_back(pattern: &str) -> bool {
    let mut before = None;
    let mut escaped = false;
    for next in pattern.chars() {
        let found = match (before, next) {
            (Some('?'), '=' | '!' | '<' | '>') => true,
            (Some('\\'), 'k' | '1'..='9') => escaped,
            _ => false,
        };
        if found {
            return true;
        }
        escaped = next == '\\' && !escaped;
        before = Some(next);
    }
    false
}
