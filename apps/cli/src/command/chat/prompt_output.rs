//! Output while a person edits a line: whole lines are printed above the prompt, which stays.
//!
//! [`PromptOutput`] is shared by the screen, whose two streams are [`PromptWriter`]s, and by the reader of
//! the terminal, which says when a line is being edited.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustyline::ExternalPrinter;

/// The lines that wait to be printed: a terminal takes them at once.
const LINES_WAITING_MAX: usize = 256;
/// How long the end of an edited line waits for the lines before it.
const DRAIN: Duration = Duration::from_millis(200);

enum PrinterTask {
    Line(String),
    /// Signals that all lines before it are printed.
    Drained(SyncSender<()>),
}

/// Where output goes: to the terminal, or above the prompt while a line is edited.
#[derive(Clone, Default)]
pub(crate) struct PromptOutput(Arc<PromptState>);

#[derive(Default)]
struct PromptState {
    is_editing: AtomicBool,
    /// The other end is a thread that prints; it ends when this is dropped.
    printer: Mutex<Option<SyncSender<PrinterTask>>>,
}

impl PromptOutput {
    /// Prints above the prompt with `printer`, in a thread of its own: the printer blocks while the
    /// editor is between two lines.
    pub(crate) fn connect(&self, printer: impl ExternalPrinter + Send + 'static) {
        let (send, tasks) = sync_channel(LINES_WAITING_MAX);
        *self.printer() = Some(send);
        std::thread::spawn(move || print_all(printer, &tasks));
    }

    /// A line is being edited from now on.
    pub(crate) fn begin(&self) {
        self.0.is_editing.store(true, Ordering::SeqCst);
    }

    /// The edited line is complete: later output goes to the terminal, after what was printed above.
    pub(crate) fn end(&self) {
        let (send, drained) = sync_channel(1);
        if self.send(PrinterTask::Drained(send)) {
            let _ = drained.recv_timeout(DRAIN);
        }
        self.0.is_editing.store(false, Ordering::SeqCst);
    }

    fn is_editing(&self) -> bool {
        self.0.is_editing.load(Ordering::SeqCst)
    }

    /// Hands a task to the printer; false if there is none, or too many lines wait.
    fn send(&self, task: PrinterTask) -> bool {
        let printer = self.printer();
        printer
            .as_ref()
            .is_some_and(|printer| printer.try_send(task).is_ok())
    }

    fn printer(&self) -> std::sync::MutexGuard<'_, Option<SyncSender<PrinterTask>>> {
        self.0
            .printer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn print_all(mut printer: impl ExternalPrinter, tasks: &Receiver<PrinterTask>) {
    while let Ok(task) = tasks.recv() {
        match task {
            PrinterTask::Line(line) => drop(printer.print(line)),
            PrinterTask::Drained(done) => drop(done.send(())),
        }
    }
}

/// A stream to the terminal that keeps the prompt intact.
pub(crate) struct PromptWriter<W> {
    terminal: W,
    output: PromptOutput,
    /// The start of a line, while a line is being edited.
    partial: Vec<u8>,
}

impl<W: Write> PromptWriter<W> {
    pub(crate) fn new(terminal: W, output: &PromptOutput) -> Self {
        Self {
            terminal,
            output: output.clone(),
            partial: Vec::new(),
        }
    }
}

impl<W: Write> Write for PromptWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.output.is_editing() {
            let partial = std::mem::take(&mut self.partial);
            self.terminal.write_all(&partial)?;
            self.terminal.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.partial.extend_from_slice(bytes);
        if let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.partial.split_off(end + 1);
            let lines = std::mem::replace(&mut self.partial, rest);
            let text = String::from_utf8_lossy(&lines).into_owned();
            if !self.output.send(PrinterTask::Line(text)) {
                self.terminal.write_all(&lines)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is printed above the prompt.
    struct Above(SyncSender<String>);

    impl ExternalPrinter for Above {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            let _ = self.0.send(text);
            Ok(())
        }
    }

    #[test]
    fn whole_lines_are_printed_above_an_edited_line() {
        let output = PromptOutput::default();
        let (send, above) = sync_channel(8);
        output.connect(Above(send));
        let mut terminal = Vec::new();
        let mut writer = PromptWriter::new(&mut terminal, &output);
        writer.write_all(b"before\n").expect("written");
        output.begin();
        writer.write_all(b"one\ntw").expect("written");
        writer.write_all(b"o\nthr").expect("written");
        output.end();
        writer.write_all(b"ee\n").expect("written");
        assert_eq!(above.try_iter().collect::<String>(), "one\ntwo\n");
        assert_eq!(String::from_utf8_lossy(&terminal), "before\nthree\n");
    }
}
