//! The output of a chat: the answer on standard output, everything else on standard error, so that
//! a pipe carries only answers.
//!
//! ```text
//!   > what time is it                 the user's line, on a terminal after the prompt
//!   thinking… (12 words)              folded, and rewritten in place while it grows
//!   Searching for offers…             a status, replaced by the next line
//!   clock ok, 3 ms                    a tool
//!   ▪ offer_list: Oat milk, Granola   a collection or component beside the answer
//!   It is noon.                       the answer, as it streams
//! ```
//! Everything that a model writes is sanitized for the terminal.

use std::io::{self, IsTerminal as _, Write};

use turnwire_event::Message;
use turnwire_event::message::Role;

use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::component_line;
use crate::terminal::keyboard;
use crate::terminal::sanitize::{self, TextSanitizer, sanitized_line};
use crate::terminal::word_wrap::{WordWrap, wrapped_line, wrapped_lines};

/// The longest line that contains text from elsewhere.
const NOTE_CHARS_MAX: usize = 400;
/// Where the list of commands tells what they do.
const HELP_COLUMN: usize = 10;
/// The longest temporary line: a line that wraps cannot be rewritten.
const TEMPORARY_CHARS_MAX: usize = 60;
/// The longest message of the past that is shown in full.
const PAST_CHARS_MAX: usize = 2_000;

/// The kinds of the three standard streams, for [`ChatScreen`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputStreams {
    /// True if a person types.
    pub(crate) stdin: bool,
    /// True if the answer is on a terminal.
    pub(crate) stdout: bool,
    /// True if everything else is on a terminal.
    pub(crate) stderr: bool,
    /// True if that terminal can rewrite a line.
    pub(crate) rewrites: bool,
}

impl OutputStreams {
    /// The streams of this process.
    pub(crate) fn of_process() -> Self {
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
    color: ColorMode,
    /// True if the answer is inside a line.
    in_line: bool,
    /// True if the terminal's current line is temporary.
    has_temporary: bool,
    /// True if the terminal's current line is the prompt.
    has_prompt: bool,
    sanitizer: TextSanitizer,
    wrap: WordWrap,
}

impl ChatScreen {
    /// A screen that writes to `out` and `err`.
    pub(crate) fn new(
        out: impl Write + 'static,
        err: impl Write + 'static,
        streams: OutputStreams,
        color: ColorMode,
    ) -> Self {
        Self {
            out: Box::new(out),
            err: Box::new(err),
            streams,
            color,
            in_line: false,
            has_temporary: false,
            has_prompt: false,
            sanitizer: TextSanitizer::default(),
            wrap: WordWrap::default(),
        }
    }

    /// True if a person can be asked a question and sees it.
    pub(crate) fn has_person(&self) -> bool {
        self.streams.stdin && self.streams.stderr
    }

    /// Shows a prompt, if a person types.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        if self.has_prompt || !self.has_person() {
            return Ok(());
        }
        self.end_line()?;
        self.clear()?;
        self.has_prompt = true;
        let text = self.wrapped(&sanitized_line(text, NOTE_CHARS_MAX));
        self.write_err(&format!("{text} "))
    }

    /// Ends what is on the current line, before an editor shows its own prompt.
    pub(crate) fn make_room(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.clear()?;
        self.err.flush()
    }

    /// Shows a line that was typed before the prompt.
    pub(crate) fn typed_ahead(&mut self, line: &str) -> io::Result<()> {
        self.note(TextTone::Strong, &format!("> {line}"))
    }

    /// Notes that the person has typed a line: the terminal is on the next one.
    pub(crate) fn line_typed(&mut self) {
        self.has_prompt = false;
    }

    /// Writes text of the answer.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        let clean = self.sanitizer.clean(text);
        if let Some(last) = clean.chars().last() {
            self.in_line = last != '\n';
        }
        let wrapped = match self.streams.stdout && self.streams.rewrites {
            true => self.wrap.wrap(&clean, keyboard::columns()),
            false => clean,
        };
        self.write_out(wrapped.as_bytes())
    }

    /// Ends the line of the answer, if it is inside one.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.sanitizer = TextSanitizer::default();
        self.wrap = WordWrap::default();
        match std::mem::take(&mut self.in_line) {
            true => self.write_out(b"\n"),
            false => Ok(()),
        }
    }

    /// Writes a line of JSON; a terminal gets hidden characters escaped.
    pub(crate) fn raw(&mut self, json: &[u8]) -> io::Result<()> {
        self.write_out(&sanitize::json_line(json, self.streams.stdout))
    }

    /// Writes one or a few lines beside the answer.
    pub(crate) fn note(&mut self, tone: TextTone, text: &str) -> io::Result<()> {
        self.clear()?;
        let mut output = String::new();
        // On one terminal the answer's line must end first; in a pipe it continues.
        if self.in_line && self.streams.stdout && self.streams.stderr {
            output.push('\n');
            self.in_line = false;
            self.wrap = WordWrap::default();
        }
        for text in text.lines() {
            let words = text.trim_start();
            let indent = &text[..text.len() - words.len()];
            let text = format!("{indent}{}", sanitized_line(words, NOTE_CHARS_MAX));
            let text = self.wrapped(&text);
            output += &(self.color.tint(tone, &text) + "\n");
        }
        self.write_err(&output)
    }

    /// Writes a note that ends with a command to copy, which is not broken: if it does not fit behind
    /// the text, it has a line of its own.
    pub(crate) fn note_with_command(
        &mut self,
        tone: TextTone,
        text: &str,
        command: &str,
    ) -> io::Result<()> {
        let whole = format!("{text} {command}");
        let fits = whole.chars().count() < keyboard::columns();
        if fits || !self.wraps() {
            return self.note(tone, &whole);
        }
        self.note(tone, text)?;
        let command = sanitized_line(command, NOTE_CHARS_MAX);
        let command = self.color.tint(tone, &command);
        self.write_err(&(command + "\n"))
    }

    /// True if lines beside the answer are wrapped between words.
    fn wraps(&self) -> bool {
        self.streams.stderr && self.streams.rewrites
    }

    fn wrapped(&self, text: &str) -> String {
        match self.wraps() {
            true => wrapped_lines(text, keyboard::columns()),
            false => text.to_owned(),
        }
    }

    /// Writes the list of commands, whose effects stand in a column of their own.
    pub(crate) fn help(&mut self, lines: &str) -> io::Result<()> {
        let columns = match self.wraps() {
            true => keyboard::columns(),
            false => usize::MAX,
        };
        let lines = lines.lines().map(|line| {
            let indent = match line.starts_with('/') {
                true => HELP_COLUMN,
                false => 0,
            };
            wrapped_line(line, indent, columns) + "\n"
        });
        let lines: String = lines.collect();
        self.block(&lines)
    }

    /// Notes that a line was typed while the answer streams: the terminal is on the next line.
    pub(crate) fn typed_meanwhile(&mut self) {
        self.wrap.line_ended();
    }

    /// Writes lines that are safe for a terminal as they are, each with its end.
    pub(crate) fn block(&mut self, lines: &str) -> io::Result<()> {
        self.end_line()?;
        self.clear()?;
        self.write_err(lines)
    }

    /// Writes reasoning as it streams.
    pub(crate) fn thinking(&mut self, sanitizer: &mut TextSanitizer, text: &str) -> io::Result<()> {
        self.clear()?;
        let text = self.color.tint(TextTone::Quiet, &sanitizer.clean(text));
        self.write_err(&text)
    }

    /// Writes a line that the next one replaces; only a terminal has such lines.
    pub(crate) fn temporary(&mut self, text: &str) -> io::Result<()> {
        if !self.streams.rewrites {
            return Ok(());
        }
        self.end_line()?;
        self.clear()?;
        self.has_temporary = true;
        let text = sanitized_line(text, TEMPORARY_CHARS_MAX);
        self.write_err(&self.color.tint(TextTone::Quiet, &text))
    }

    /// Writes a [`temporary`](Self::temporary) line, or a note where lines cannot be replaced.
    pub(crate) fn temporary_or_note(&mut self, text: &str) -> io::Result<()> {
        match self.streams.rewrites {
            true => self.temporary(text),
            false => self.note(TextTone::Quiet, text),
        }
    }

    /// Removes a temporary line.
    pub(crate) fn clear_temporary(&mut self) -> io::Result<()> {
        match self.has_temporary {
            true => self.clear().and_then(|()| self.err.flush()),
            false => Ok(()),
        }
    }

    /// Writes a message from before the chat.
    pub(crate) fn past_message(&mut self, message: &Message) -> io::Result<()> {
        for component in component_line::lines(&message.content) {
            self.note(TextTone::Strong, &component)?;
        }
        let mut text = TextSanitizer::default().clean(&message.text());
        if let Some((at, _)) = text.char_indices().nth(PAST_CHARS_MAX) {
            text.truncate(at);
            text.push('…');
        }
        let text = match message.role {
            _ if message.text().is_empty() => return Ok(()),
            Role::User => format!("> {text}"),
            Role::Assistant | Role::System => text,
            Role::Tool => return Ok(()),
        };
        let mut text = self.wrapped(&text);
        if message.role == Role::User {
            text = self.color.tint(TextTone::Strong, &text);
        }
        self.clear()?;
        self.write_err(&(text + "\n"))
    }

    /// Clears the terminal's line of a temporary line or a prompt.
    fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_temporary) {
            write!(self.err, "\r\u{1b}[K")?;
        } else if self.has_prompt {
            writeln!(self.err)?;
        }
        self.has_prompt = false;
        Ok(())
    }

    fn write_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    fn write_err(&mut self, text: &str) -> io::Result<()> {
        self.err.write_all(text.as_bytes())?;
        self.err.flush()
    }
}
