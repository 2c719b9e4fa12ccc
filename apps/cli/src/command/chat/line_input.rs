//! The lines that a person types: at a terminal edited with history at the prompt and plain while a turn
//! runs, elsewhere the lines of standard input.
//!
//! ```text
//!   conversation ── ReadMode ──▶ reader thread ── ReadResponse ──▶ conversation
//!                   one request                   one response each
//!        └─ a byte in the wake pipe withdraws a plain request
//! ```
//! The reader thread of a terminal reads only when asked, because an edited line needs the terminal in
//! raw mode and everything else needs it as it was. An edited line cannot be withdrawn: it ends with a
//! line, Ctrl-C or the end of the input, or the process ends and [`TerminalLines`] restores the
//! terminal.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::sync::mpsc::{Receiver, channel};

use super::input::{self, TypedLine};
use super::prompt_output::PromptOutput;

/// The prompt of the conversation.
const PROMPT: &str = "> ";
/// The lines that the history keeps: some weeks of talking, and quick to load.
const HISTORY_LINES_MAX: usize = 1_000;
/// The longest line that is read while a turn runs: the line buffer of terminals is smaller.
const PLAIN_BYTES_MAX: usize = 64 * 1024;
/// Ends the mode in which a terminal marks pasted text.
const PASTE_MARKS_OFF: &str = "\u{1b}[?2004l";

/// The source of lines.
pub(crate) enum LineInput {
    Pipe(Receiver<TypedLine>),
    Terminal(TerminalLines),
}

/// The result of waiting for a line at the prompt.
pub(crate) enum PromptLine {
    Line(TypedLine),
    /// Ctrl-C at the prompt, where the terminal sends no signal.
    Interrupted,
    EndOfInput,
}

impl LineInput {
    /// The lines of standard input.
    pub(crate) fn pipe() -> Self {
        Self::Pipe(input::lines())
    }

    /// True if lines are read with [`LineInput::edited`].
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line, read as it is; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<TypedLine> {
        match self {
            Self::Pipe(lines) => lines.recv().await,
            Self::Terminal(lines) => lines.plain().await,
        }
    }

    /// The next line at the prompt of the conversation.
    pub(crate) async fn edited(&mut self) -> PromptLine {
        match self {
            Self::Pipe(lines) => lines
                .recv()
                .await
                .map_or(PromptLine::EndOfInput, PromptLine::Line),
            Self::Terminal(lines) => lines.edited().await,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ReadMode {
    Plain,
    Edited,
}

enum ReadResponse {
    Line(TypedLine),
    Interrupted,
    EndOfInput,
    /// A plain request was withdrawn before a line came.
    Withdrawn,
}

/// The lines of a terminal. Dropping it restores the terminal; the reader thread ends with the process.
pub(crate) struct TerminalLines {
    requests: Sender<ReadMode>,
    responses: Receiver<ReadResponse>,
    wake: PipeWriter,
    /// The request that has no response yet.
    pending: Option<ReadMode>,
    is_withdrawn: bool,
    has_ended: bool,
    output: PromptOutput,
    original: Option<Termios>,
}

impl TerminalLines {
    /// Starts the reader thread. Lines of the prompt are added to the file `history`, if given.
    pub(crate) fn start(history: Option<PathBuf>, output: &PromptOutput) -> anyhow::Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .build();
        let mut editor: Editor<(), FileHistory> = Editor::with_config(config)?;
        output.connect(editor.create_external_printer()?);
        if let Some(path) = &history {
            // A file that cannot be read is one that is not there yet.
            let _ = editor.load_history(path);
        }
        let (wake_read, wake) = io::pipe()?;
        let keys = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (requests, asked) = mpsc::channel();
        let (send, responses) = channel(1);
        let mut reader = TerminalReader {
            editor,
            history,
            keys,
            wake: wake_read,
        };
        std::thread::spawn(move || {
            while let Ok(mode) = asked.recv() {
                let response = match mode {
                    ReadMode::Plain => reader.plain(),
                    ReadMode::Edited => reader.edited(),
                };
                if send.blocking_send(response).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            requests,
            responses,
            wake,
            pending: None,
            is_withdrawn: false,
            has_ended: false,
            output: output.clone(),
            original: tcgetattr(io::stdin()).ok(),
        })
    }

    async fn plain(&mut self) -> Option<TypedLine> {
        loop {
            if self.has_ended {
                return None;
            }
            match self.response(ReadMode::Plain).await {
                ReadResponse::Line(line) => return Some(line),
                ReadResponse::EndOfInput => self.has_ended = true,
                ReadResponse::Interrupted | ReadResponse::Withdrawn => {}
            }
        }
    }

    async fn edited(&mut self) -> PromptLine {
        loop {
            if self.has_ended {
                return PromptLine::EndOfInput;
            }
            if self.pending == Some(ReadMode::Plain) && !self.is_withdrawn {
                self.is_withdrawn = true;
                // The reader is gone only if the process ends.
                let _ = self.wake.write_all(b"w");
            }
            match self.response(ReadMode::Edited).await {
                ReadResponse::Line(line) => return PromptLine::Line(line),
                ReadResponse::Interrupted => return PromptLine::Interrupted,
                ReadResponse::EndOfInput => self.has_ended = true,
                ReadResponse::Withdrawn => {}
            }
        }
    }

    /// The response to the pending request, or to a new one of `mode`. Cancel safe.
    async fn response(&mut self, mode: ReadMode) -> ReadResponse {
        if self.pending.is_none() {
            if mode == ReadMode::Edited {
                self.output.begin();
            }
            self.pending = Some(mode);
            if self.requests.send(mode).is_err() {
                return ReadResponse::EndOfInput;
            }
        }
        let response = self.responses.recv().await;
        if self.pending.take() == Some(ReadMode::Edited) {
            self.output.end();
        }
        self.is_withdrawn = false;
        response.unwrap_or(ReadResponse::EndOfInput)
    }
}

impl Drop for TerminalLines {
    fn drop(&mut self) {
        if self.pending != Some(ReadMode::Edited) {
            return;
        }
        self.output.end();
        if let Some(original) = &self.original {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, original);
        }
        let _ = writeln!(io::stdout(), "{PASTE_MARKS_OFF}");
    }
}

/// The part of [`TerminalLines`] that its thread holds.
struct TerminalReader {
    editor: Editor<(), FileHistory>,
    history: Option<PathBuf>,
    keys: File,
    wake: PipeReader,
}

impl TerminalReader {
    fn edited(&mut self) -> ReadResponse {
        match self.editor.readline(PROMPT) {
            Ok(line) => {
                let line = line.trim().to_owned();
                self.remember(&line);
                ReadResponse::Line(TypedLine::now(Ok(line)))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => ReadResponse::Interrupted,
            Err(ReadlineError::Eof) => ReadResponse::EndOfInput,
            Err(error) => {
                let reason = format!("the line cannot be read: {error}");
                ReadResponse::Line(TypedLine::now(Err(reason)))
            }
        }
    }

    /// Adds a line to the history. A history that cannot be written is not worth an error.
    fn remember(&mut self, line: &str) {
        if line.is_empty() || !self.editor.add_history_entry(line).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.history {
            let folder = path.parent().map(std::fs::create_dir_all);
            if folder.is_none_or(|made| made.is_ok()) {
                let _ = self.editor.append_history(path);
            }
        }
    }

    /// A line as the terminal gives it, or until the request is withdrawn.
    fn plain(&mut self) -> ReadResponse {
        let mut line = Vec::new();
        loop {
            let mut fds = [
                PollFd::new(&self.keys, PollFlags::IN),
                PollFd::new(&self.wake, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return ReadResponse::EndOfInput,
                Ok(_) => {}
            }
            let (has_keys, is_withdrawn) =
                (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if is_withdrawn {
                let _ = self.wake.read(&mut [0]);
            }
            if has_keys {
                let mut bytes = [0; 4096];
                match self.keys.read(&mut bytes) {
                    Ok(0) | Err(_) if line.is_empty() => return ReadResponse::EndOfInput,
                    Ok(0) | Err(_) => line.push(b'\n'),
                    Ok(length) => line.extend_from_slice(&bytes[..length]),
                }
                if line.ends_with(b"\n") || line.len() > PLAIN_BYTES_MAX {
                    let text = String::from_utf8_lossy(&line).trim().to_owned();
                    return ReadResponse::Line(TypedLine::now(Ok(text)));
                }
            } else if is_withdrawn {
                return ReadResponse::Withdrawn;
            }
        }
    }
}

/// The file of the history: `$XDG_STATE_HOME/turnwire/chat_history`, else below `~/.local/state`.
pub(crate) fn history_file() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|path| !path.is_empty());
    let state = folder("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/state")));
    Some(state?.join("turnwire/chat_history"))
}
