//! Colour on terminals, unless `NO_COLOR` is set.

use std::io::IsTerminal as _;

/// The emphasis of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTone {
    Quiet,
    Strong,
    Good,
    Bad,
}

/// Colour or plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorMode {
    Color,
    Plain,
}

impl ColorMode {
    /// The mode of standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// The mode of standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Self {
        let var = |name| std::env::var_os(name).unwrap_or_default();
        Self::choose(terminal, !var("NO_COLOR").is_empty(), var("TERM") == "dumb")
    }

    fn choose(terminal: bool, refused: bool, dumb: bool) -> Self {
        match terminal && !refused && !dumb {
            true => Self::Color,
            false => Self::Plain,
        }
    }

    /// `text` in a [`TextTone`].
    pub(crate) fn tint(self, tone: TextTone, text: &str) -> String {
        if self == Self::Plain {
            return text.to_owned();
        }
        let code = match tone {
            TextTone::Quiet => 2,
            TextTone::Strong => 1,
            TextTone::Good => 32,
            TextTone::Bad => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_on_a_terminal_that_wants_it() {
        assert_eq!(ColorMode::choose(true, false, false), ColorMode::Color);
        for (terminal, refused, dumb) in [
            (false, false, false),
            (true, true, false),
            (true, false, true),
        ] {
            assert_eq!(ColorMode::choose(terminal, refused, dumb), ColorMode::Plain);
        }
        assert_eq!(ColorMode::Plain.tint(TextTone::Bad, "x"), "x");
        assert_eq!(
            ColorMode::Color.tint(TextTone::Bad, "x"),
            "\u{1b}[31mx\u{1b}[0m"
        );
    }
}
