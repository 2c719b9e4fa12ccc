//! The language of an answer, and how it formats money, numbers and past days.

/// A language that the demo data is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoLanguage {
    En,
    De,
    Es,
}

impl DemoLanguage {
    /// The language of a tag such as `de-AT`; English for any other language.
    pub(crate) fn from_tag(tag: &str) -> Self {
        match tag.split(['-', '_']).next().unwrap_or_default() {
            lang if lang.eq_ignore_ascii_case("de") => Self::De,
            lang if lang.eq_ignore_ascii_case("es") => Self::Es,
            _ => Self::En,
        }
    }

    /// Selects the text in this language from its English, German and Spanish versions.
    pub(crate) fn pick(self, [en, de, es]: [&'static str; 3]) -> &'static str {
        match self {
            Self::En => en,
            Self::De => de,
            Self::Es => es,
        }
    }

    /// Formats an amount of money.
    pub(crate) fn money(self, cents: u32) -> String {
        let (euros, cents) = (cents / 100, cents % 100);
        match self {
            Self::En => format!("€{euros}.{cents:02}"),
            Self::De | Self::Es => format!("{euros},{cents:02} €"),
        }
    }

    /// Formats a whole number below a million, with a thousands separator.
    pub(crate) fn number(self, n: u64) -> String {
        let (thousands, units) = (n / 1000, n % 1000);
        match (thousands, self) {
            (0, _) => format!("{units}"),
            (_, Self::En) => format!("{thousands},{units:03}"),
            (_, Self::De | Self::Es) => format!("{thousands}.{units:03}"),
        }
    }

    /// Formats a day in the past.
    pub(crate) fn ago(self, days: u32) -> String {
        match self {
            Self::En => format!("{days} days ago"),
            Self::De => format!("vor {days} Tagen"),
            Self::Es => format!("hace {days} días"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_numbers_follow_the_language() {
        assert_eq!(DemoLanguage::from_tag("en").money(149), "€1.49");
        assert_eq!(DemoLanguage::from_tag("de-AT").money(1205), "12,05 €");
        assert_eq!(DemoLanguage::from_tag("ES_mx").number(4_020), "4.020");
        assert_eq!(DemoLanguage::from_tag("fr").number(820), "820");
    }
}
