//! What is on the screen: the answer on the standard output, everything else on the standard
//! error, so that a pipe carries answers alone.
//!
//! ```text
//!   > what time is it                 a person's line, on a terminal behind the prompt
//!   thinking… (12 words)              folded, and rewritten in place while it grows
//!   Searching for offers…             what is being done, replaced by what comes next
//!   clock ok, 3 ms                    a tool
//!   ▪ offer_list: Oat milk, Granola   what is shown beside the answer
//!   It is noon.                       the answer, as it comes
//! ```
//! Nothing a model writes reaches the terminal uncleaned.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use turnwire_event::Message;
use turnwire_event::message::Role;

use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::component_line;
use crate::terminal::sanitize::{self, TextSanitizer, line};

/// The longest line of ours with words of others in it.
const NOTE_CHARS_MAX: usize = 400;
/// The longest line that will be rewritten: a line that wraps cannot be.
const PASSING_CHARS_MAX: usize = 60;
/// How much of an old message is shown to someone who comes back.
const OLD_CHARS_MAX: usize = 2_000;

/// What kind of places the three standard streams are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputStreams {
    /// Whether a person types.
    pub(crate) stdin: bool,
    /// Whether the answer is on a terminal.
    pub(crate) stdout: bool,
    /// Whether everything else is.
    pub(crate) stderr: bool,
    /// Whether that terminal can rewrite a line.
    pub(crate) rewrites: bool,
}

impl OutputStreams {
    /// Those of this process.
    pub(crate) fn here() -> Self {
        let stderr = io::stderr().is_terminal();
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr,
            rewrites: stderr && std::env::var_os("TERM").is_some_and(|term| term != "dumb"),
        }
    }
}

pub(crate) struct ChatScreen {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    streams: OutputStreams,
    paint: ColorMode,
    /// Whether the answer stands at the beginning of a line.
    fresh: bool,
    /// Whether the line of the terminal is one that will be rewritten.
    passing: bool,
    /// Whether the prompt waits on the terminal's line.
    prompted: bool,
    cleaner: TextSanitizer,
}

impl ChatScreen {
    /// The screen of this process.
    pub(crate) fn here(streams: OutputStreams) -> Self {
        let paint = ColorMode::of_stderr();
        Self::on(
            Box::new(io::stdout()),
            Box::new(io::stderr()),
            streams,
            paint,
        )
    }

    /// A screen made of two places to write to.
    pub(crate) fn on(
        out: Box<dyn Write>,
        err: Box<dyn Write>,
        streams: OutputStreams,
        paint: ColorMode,
    ) -> Self {
        Self {
            out,
            err,
            streams,
            paint,
            fresh: true,
            passing: false,
            prompted: false,
            cleaner: TextSanitizer::default(),
        }
    }

    /// Whether there is a person who can be asked something, and be seen to answer.
    pub(crate) fn has_person(&self) -> bool {
        self.streams.stdin && self.streams.stderr
    }

    /// Asks for a line, where a person types.
    pub(crate) fn prompt(&mut self) -> io::Result<()> {
        self.ask(">")
    }

    /// Asks for a line with a question, where a person types.
    pub(crate) fn ask(&mut self, words: &str) -> io::Result<()> {
        if self.prompted || !self.has_person() {
            return Ok(());
        }
        self.line_end()?;
        self.wipe()?;
        self.prompted = true;
        write!(self.err, "{} ", line(words, NOTE_CHARS_MAX))?;
        self.err.flush()
    }

    /// The person has typed a line: the terminal stands on the next one.
    pub(crate) fn typed(&mut self) {
        self.prompted = false;
    }

    /// Words of the answer.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        self.wipe()?;
        let clean = self.cleaner.clean(text);
        if let Some(last) = clean.chars().last() {
            self.fresh = last == '\n';
        }
        self.out.write_all(clean.as_bytes())?;
        self.out.flush()
    }

    /// Ends the line of the answer, if one is begun.
    pub(crate) fn line_end(&mut self) -> io::Result<()> {
        self.cleaner = TextSanitizer::default();
        if self.fresh {
            return Ok(());
        }
        self.fresh = true;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// JSON that is already a line; a terminal gets its hidden characters escaped.
    pub(crate) fn raw(&mut self, json: &[u8]) -> io::Result<()> {
        let json = match self.streams.stdout {
            true => sanitize::json(json),
            false => Cow::Borrowed(json),
        };
        self.out.write_all(&[&json, &b"\n"[..]].concat())?;
        self.out.flush()
    }

    /// Words of ours, a line or a few.
    pub(crate) fn note(&mut self, tone: TextTone, text: &str) -> io::Result<()> {
        self.wipe()?;
        let mut output = String::new();
        // On one terminal the answer's line must end first; in a pipe it goes on.
        if !self.fresh && self.streams.stdout && self.streams.stderr {
            output.push('\n');
            self.fresh = true;
        }
        for line in text.lines() {
            let line = self.paint.tint(tone, &self.flat(line));
            output.push_str(&format!("{line}\n"));
        }
        self.err.write_all(output.as_bytes())?;
        self.err.flush()
    }

    /// A line without what a terminal must not get, indented as it was.
    fn flat(&self, text: &str) -> String {
        let words = text.trim_start();
        let indent = &text[..text.len() - words.len()];
        format!("{indent}{}", line(words, NOTE_CHARS_MAX))
    }

    /// Words that are not the answer, as they come.
    pub(crate) fn aside(&mut self, cleaner: &mut TextSanitizer, text: &str) -> io::Result<()> {
        self.wipe()?;
        let clean = cleaner.clean(text);
        write!(self.err, "{}", self.paint.tint(TextTone::Quiet, &clean))?;
        self.err.flush()
    }

    /// A line that the next one replaces; only a terminal has such lines.
    pub(crate) fn passing(&mut self, text: &str) -> io::Result<()> {
        if !self.streams.rewrites {
            return Ok(());
        }
        self.line_end()?;
        self.wipe()?;
        self.passing = true;
        let text = self
            .paint
            .tint(TextTone::Quiet, &line(text, PASSING_CHARS_MAX));
        write!(self.err, "{text}")?;
        self.err.flush()
    }

    /// A line that the next one replaces, or stays where lines cannot be replaced.
    pub(crate) fn passing_or_note(&mut self, text: &str) -> io::Result<()> {
        match self.streams.rewrites {
            true => self.passing(text),
            false => self.note(TextTone::Quiet, text),
        }
    }

    /// Takes away a line that waits to be replaced.
    pub(crate) fn passed(&mut self) -> io::Result<()> {
        if !self.passing {
            return Ok(());
        }
        self.wipe()?;
        self.err.flush()
    }

    /// A message that was there before we came.
    pub(crate) fn old(&mut self, message: &Message) -> io::Result<()> {
        for card in component_line::shown(&message.content) {
            self.note(TextTone::Strong, &card)?;
        }
        let text = message.text();
        if text.is_empty() {
            return Ok(());
        }
        let mut clean = TextSanitizer::default().clean(&text);
        if let Some((at, _)) = clean.char_indices().nth(OLD_CHARS_MAX) {
            clean.truncate(at);
            clean.push('…');
        }
        let text = match message.role {
            Role::User => self.paint.tint(TextTone::Strong, &format!("> {clean}")),
            Role::Assistant | Role::System => clean,
            Role::Tool => return Ok(()),
        };
        self.wipe()?;
        writeln!(self.err, "{text}")?;
        self.err.flush()
    }

    /// Frees the terminal's line of what waits or passes there.
    fn wipe(&mut self) -> io::Result<()> {
        if self.passing {
            write!(self.err, "\r\u{1b}[K")?;
        } else if self.prompted {
            writeln!(self.err)?;
        }
        (self.passing, self.prompted) = (false, false);
        Ok(())
    }
}
