//! The retry delay that a provider asks for. Vendors send it in three ways: milliseconds in a
//! header of their own, seconds, or a date; seconds and milliseconds may have decimals.

use std::time::Duration;

/// Upper limit of the delay: no provider means more than a day.
const DELAY_MAX: Duration = Duration::from_secs(86_400);

/// The delay in the headers, the most exact one first. A date is compared with the response's
/// `date` header, since the local clock may be wrong; without that header it is ignored.
pub(super) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
    let to_duration = |seconds: f64| {
        // Rejects negative numbers, NaN and overflow.
        Duration::try_from_secs_f64(seconds).ok()
    };
    let exact = number("retry-after-ms").and_then(|ms| to_duration(ms / 1_000.0));
    let seconds = || number("retry-after").and_then(to_duration);
    let date = || {
        let until = httpdate::parse_http_date(header("retry-after")?.trim()).ok()?;
        let now = httpdate::parse_http_date(header("date")?.trim()).ok()?;
        Some(until.duration_since(now).unwrap_or_default())
    };
    let delay = exact.or_else(seconds).or_else(date);
    delay.map(|delay| delay.min(DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers = [(&'static str, &'static str)];

    fn parse_delay(headers: &[(&str, &str)]) -> Option<Duration> {
        let headers = headers.to_vec();
        retry_after(move |name| {
            let header = headers.iter().find(|(key, _)| *key == name);
            header.map(|&(_, value)| value)
        })
    }

    #[test]
    fn retry_after_is_read_in_every_form_the_most_exact_first() {
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
            (&[("retry-after", "1000000000")], Some(DELAY_MAX)),
        ];
        for (headers, expected) in cases {
            assert_eq!(parse_delay(headers), expected, "{headers:?}");
        }
        for unusable in ["inf", "1e300", "tomorrow", ""] {
            assert_eq!(
                parse_delay(&[("retry-after", unusable)]),
                None,
                "{unusable}"
            );
        }
    }
}
