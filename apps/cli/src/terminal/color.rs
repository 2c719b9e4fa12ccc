//! Colour, where it is wanted: on a terminal, unless `NO_COLOR` says otherwise.

use std::io::IsTerminal as _;

/// How something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Of less interest.
    Quiet,
    /// To be seen first.
    Strong,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
}

/// Whether colour is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// It is.
    Colour,
    /// It is not.
    Plain,
}

impl Paint {
    /// What fits the standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// What fits the standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Self {
        let var = |name| std::env::var_os(name).unwrap_or_default();
        Self::choose(terminal, !var("NO_COLOR").is_empty(), var("TERM") == "dumb")
    }

    fn choose(terminal: bool, refused: bool, dumb: bool) -> Self {
        if terminal && !refused && !dumb {
            Self::Colour
        } else {
            Self::Plain
        }
    }

    /// `text` in a tone.
    pub(crate) fn tint(self, tone: Tone, text: &str) -> String {
        if self == Self::Plain {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Quiet => 2,
            Tone::Strong => 1,
            Tone::Good => 32,
            Tone::Bad => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_on_a_terminal_that_wants_it() {
        assert_eq!(Paint::choose(true, false, false), Paint::Colour);
        for (terminal, refused, dumb) in [
            (false, false, false),
            (true, true, false),
            (true, false, true),
        ] {
            assert_eq!(Paint::choose(terminal, refused, dumb), Paint::Plain);
        }
        assert_eq!(Paint::Plain.tint(Tone::Bad, "x"), "x");
        assert_eq!(Paint::Colour.tint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
