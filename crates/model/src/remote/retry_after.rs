//! When a provider wants to be asked again. Vendors say it in three ways: milliseconds in a header
//! of their own, seconds, or a date; seconds and milliseconds may have decimals.

use std::time::Duration;

/// No provider means longer than a day, whatever it wrote.
const LONGEST: Duration = Duration::from_secs(86_400);

/// What the headers say, the most exact first. A date is held against the answer's own date: both
/// are of one clock then, and ours need not be right. Without that date it says nothing.
pub(super) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
    let span = |seconds: f64| {
        // Refuses what is negative, not a number or beyond counting.
        Duration::try_from_secs_f64(seconds).ok()
    };
    let exact = number("retry-after-ms").and_then(|ms| span(ms / 1_000.0));
    let seconds = || number("retry-after").and_then(span);
    let date = || {
        let until = httpdate::parse_http_date(header("retry-after")?.trim()).ok()?;
        let now = httpdate::parse_http_date(header("date")?.trim()).ok()?;
        Some(until.duration_since(now).unwrap_or_default())
    };
    let found = exact.or_else(seconds).or_else(date);
    found.map(|span| span.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers = [(&'static str, &'static str)];

    fn told(headers: &[(&str, &str)]) -> Option<Duration> {
        let headers = headers.to_vec();
        retry_after(move |name| {
            let found = headers.iter().find(|(key, _)| *key == name);
            found.map(|&(_, value)| value)
        })
    }

    #[test]
    fn every_way_of_saying_it_is_understood_and_the_most_exact_counts() {
        let ms = Duration::from_millis;
        let (soon, now) = (
            "Fri, 13 Nov 2026 10:00:07 GMT",
            "Fri, 13 Nov 2026 10:00:00 GMT",
        );
        let cases: [(&Headers, Option<Duration>); 14] = [
            (&[], None),
            (&[("retry-after", "2")], Some(ms(2_000))),
            (&[("retry-after", " 0.5 ")], Some(ms(500))),
            (&[("retry-after", "0")], Some(ms(0))),
            (&[("retry-after-ms", "250")], Some(ms(250))),
            (
                &[("retry-after-ms", "1.5")],
                Some(Duration::from_micros(1_500)),
            ),
            (
                &[("retry-after", "9"), ("retry-after-ms", "10")],
                Some(ms(10)),
            ),
            (
                &[("retry-after", "9"), ("retry-after-ms", "x")],
                Some(ms(9_000)),
            ),
            (&[("retry-after", soon), ("date", now)], Some(ms(7_000))),
            (&[("retry-after", now), ("date", soon)], Some(ms(0))),
            (&[("retry-after", soon)], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1000000000")], Some(LONGEST)),
        ];
        for (headers, expected) in cases {
            assert_eq!(told(headers), expected, "{headers:?}");
        }
        for beyond in ["inf", "1e300", "tomorrow", ""] {
            assert_eq!(told(&[("retry-after", beyond)]), None, "{beyond}");
        }
    }
}
