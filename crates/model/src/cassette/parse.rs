//! Parses a cassette file into complete calls. A file whose writer died during a call is read up to
//! that call; any other mistake is an error with its line.

use super::VERSION;
use super::line::{CassetteLine, EndLine};
use super::recorded_call::{CallEnding, RecordedCall};
use super::salt::CassetteSalt;

/// Largest number of calls in a cassette: a day of use; every lookup scans them all.
const CALLS_MAX: usize = 10_000;

/// A cassette file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct CassetteError {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// The mistake on that line.
    pub message: String,
}

/// Parses the [`RecordedCall`]s of a cassette, in the order in which they ended; `file` is named in
/// errors.
pub fn parse(file: &str, text: &str) -> Result<Vec<RecordedCall>, CassetteError> {
    let mut parser = CassetteParser::default();
    let error = |line, message| CassetteError {
        file: file.to_owned(),
        line,
        message,
    };
    let mut lines = (1..).zip(text.split_inclusive('\n')).peekable();
    while let Some((number, line)) = lines.next() {
        let is_torn = lines.peek().is_none() && !line.ends_with('\n');
        match parser.push_line(line.trim_end_matches(['\n', '\r'])) {
            Ok(()) => {}
            // The writer died during this line: everything before it is complete.
            Err(_) if is_torn && number > 1 => break,
            Err(message) => return Err(error(number, message)),
        }
    }
    match parser.has_header {
        true => Ok(parser.calls),
        false => Err(error(1, NO_HEADER.to_owned())),
    }
}

/// The state of the parser between two [`CassetteLine`]s.
#[derive(Default)]
struct CassetteParser {
    has_header: bool,
    salt: CassetteSalt,
    open: Option<RecordedCall>,
    calls: Vec<RecordedCall>,
}

impl CassetteParser {
    fn push_line(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let parsed: CassetteLine<'_> = serde_json::from_str(line).map_err(|error| {
            let message = error.to_string();
            // The location in this message is that of a one-line text.
            let message = message.split(" at line ").next().unwrap_or_default();
            format!("this is not a cassette line: {message}")
        })?;
        if !self.has_header && !matches!(parsed, CassetteLine::Cassette { .. }) {
            return Err(NO_HEADER.to_owned());
        }
        match parsed {
            CassetteLine::Cassette { version, .. } if version != VERSION => Err(format!(
                "this is version {version} of the format; version {VERSION} can be read"
            )),
            CassetteLine::Cassette { salt, .. } => {
                self.has_header = true;
                self.salt = CassetteSalt::parse(salt.as_deref())?;
                self.check_no_open_call("a cassette")
            }
            CassetteLine::Call(opening) => {
                self.check_no_open_call("a call")?;
                self.open = Some(opening.into_call(self.salt.clone()));
                Ok(())
            }
            CassetteLine::Chunk(piece) => {
                let chunk = piece.into_chunk()?;
                self.open.as_mut().ok_or(NO_CALL)?.chunks.push(chunk);
                Ok(())
            }
            CassetteLine::End(closing) => self.end(closing),
        }
    }

    fn end(&mut self, closing: EndLine) -> Result<(), String> {
        let (ended_after, ending) = closing.ending()?;
        let mut call = self.open.take().ok_or(NO_CALL)?;
        if call.answer.is_none() && ending == CallEnding::End {
            return Err("a call with `how: end` has a `status`".to_owned());
        }
        if self.calls.len() == CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} calls"));
        }
        (call.ended_after, call.ending) = (ended_after, ending);
        self.calls.push(call);
        Ok(())
    }

    /// Fails if a call is still open.
    fn check_no_open_call(&self, item: &str) -> Result<(), String> {
        match &self.open {
            None => Ok(()),
            Some(_) => Err(format!(
                "{item} starts, and the call before it has no `end`"
            )),
        }
    }
}

const NO_HEADER: &str = r#"the first line of a cassette is {"type":"cassette","version":1}"#;
const NO_CALL: &str = "this line needs a `call` line before it";

#[cfg(test)]
mod tests;
