//! The language an answer is written in, and how it writes money, points and days.

/// One of the three languages of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    En,
    De,
    Es,
}

impl Tongue {
    /// The language of a tag such as `de-AT`; English if it is none of the three.
    pub(super) fn of(tag: &str) -> Self {
        match tag.split(['-', '_']).next().unwrap_or_default() {
            lang if lang.eq_ignore_ascii_case("de") => Self::De,
            lang if lang.eq_ignore_ascii_case("es") => Self::Es,
            _ => Self::En,
        }
    }

    /// The one of three that is in this language.
    pub(super) fn pick<T>(self, en: T, de: T, es: T) -> T {
        match self {
            Self::En => en,
            Self::De => de,
            Self::Es => es,
        }
    }

    /// An amount of money.
    pub(super) fn money(self, cents: u32) -> String {
        let (whole, rest) = (cents / 100, cents % 100);
        match self {
            Self::En => format!("€{whole}.{rest:02}"),
            Self::De | Self::Es => format!("{whole},{rest:02} €"),
        }
    }

    /// A whole number below a million.
    pub(super) fn number(self, n: u64) -> String {
        let (thousands, rest) = (n / 1000, n % 1000);
        match (thousands, self) {
            (0, _) => format!("{rest}"),
            (_, Self::En) => format!("{thousands},{rest:03}"),
            (_, Self::De | Self::Es) => format!("{thousands}.{rest:03}"),
        }
    }

    /// A day in the past.
    pub(super) fn ago(self, days: u32) -> String {
        self.pick(
            format!("{days} days ago"),
            format!("vor {days} Tagen"),
            format!("hace {days} días"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_numbers_are_localised() {
        assert_eq!(Tongue::of("en").money(149), "€1.49");
        assert_eq!(Tongue::of("de-AT").money(1205), "12,05 €");
        assert_eq!(Tongue::of("ES_mx").number(4_020), "4.020");
        assert_eq!(Tongue::of("fr").number(820), "820");
    }
}
