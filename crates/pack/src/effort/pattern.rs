//! How large a pattern is when its repeats are written out, and what it costs to try it.

/// Of a class of Unicode; how large its table is, is seen when it is compiled.
const CLASS: u64 = 4;
/// A pattern as a cost.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    /// Steps that making it ready takes.
    pub(super) work: u64,
    /// Parts of it that may be at work at the same letter.
    at_once: u64,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        Self {
            text: pattern.to_owned(),
            work: work(pattern),
            at_once: at_once(pattern).unwrap_or_else(|| size(pattern)),
        }
    }

    /// Steps that trying it on `text` takes.
    pub(super) fn cost(&self, text: &str) -> u64 {
        (text.len() as u64).saturating_mul(self.at_once) / 8
    }
}

/// Parts of `pattern` at work at once, if it begins with one repeat that is entered once: that is
/// at one count at a time, however high it counts.
fn at_once(pattern: &str) -> Option<u64> {
    let anchored = pattern.strip_prefix('^');
    let from = anchored.unwrap_or(pattern);
    let atom = atom(from)?;
    let (part, rest) = from.split_at(atom);
    let (count, rest) = rest.strip_prefix('{')?.split_once('}')?;
    if rest.starts_with(['{', '*', '+', '?']) || rest.contains('|') {
        return None;
    }
    let least = count.split(',').next()?.parse::<u64>().ok()?;
    match (anchored, rest) {
        (Some(_), rest) => Some(size(part).saturating_add(size(rest))),
        // It is found as soon as it has been there often enough.
        (None, "") => Some(size(part).saturating_mul(least.max(1))),
        (None, _) => None,
    }
}

/// Bytes of the letter or class that `pattern` begins with.
fn atom(pattern: &str) -> Option<usize> {
    let mut chars = pattern.char_indices();
    let (_, first) = chars.next()?;
    match first {
        '(' | ')' | '|' | '*' | '+' | '?' | '{' | '^' | '$' => None,
        '\\' => {
            let (_, escaped) = chars.next()?;
            let end = match (escaped, chars.clone().next()) {
                ('p' | 'P' | 'u' | 'x', Some((_, '{'))) => chars.find(|&(_, c)| c == '}')?.0 + 1,
                ('w' | 'W' | 'd' | 'D' | 's' | 'S' | '.' | '-' | '/', next) => {
                    next.map_or(pattern.len(), |(at, _)| at)
                }
                _ => return None,
            };
            Some(end)
        }
        '[' => {
            while let Some((at, next)) = chars.next() {
                match next {
                    '\\' => drop(chars.next()),
                    ']' => return Some(at + 1),
                    _ => {}
                }
            }
            None
        }
        other => Some(other.len_utf8()),
    }
}

/// Steps that making `pattern` ready takes: its parts, and the classes in it that have another
/// meaning in a schema. All of it is read anew for each of those.
pub(super) fn work(pattern: &str) -> u64 {
    let mut chars = pattern.chars();
    let mut classes = 0_u64;
    while let Some(next) = chars.next() {
        if next == '\\' {
            let class = chars.next().is_some_and(|c| "sSdDwWc".contains(c));
            classes += u64::from(class);
        }
    }
    size(pattern).saturating_add(classes.saturating_mul(classes) / 4)
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
