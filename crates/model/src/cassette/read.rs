//! Reading a cassette: lines in, whole calls out. A file whose writer died in the middle of a call
//! is read up to there; anything else that is wrong is told with its line.

use super::VERSION;
use super::call::{Call, Ending};
use super::line::{Closing, Line};
use super::salt::Salt;

/// Calls of one cassette: a day of talk; each is looked at when one is looked for.
const CALLS_MAX: usize = 10_000;

/// A cassette that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct CassetteError {
    /// Which file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there.
    pub what: String,
}

/// Reads the calls of a cassette, in the order they ended; `file` is named in errors.
pub fn read(file: &str, text: &str) -> Result<Vec<Call>, CassetteError> {
    let mut reading = Reading::default();
    let mut lines = (1..).zip(text.split_inclusive('\n')).peekable();
    while let Some((at, written)) = lines.next() {
        let torn = lines.peek().is_none() && !written.ends_with('\n');
        match reading.take(written.trim_end_matches(['\n', '\r'])) {
            Ok(()) => {}
            // The writer died while it wrote: what stands before is whole.
            Err(_) if torn && at > 1 => break,
            Err(what) => {
                return Err(CassetteError {
                    file: file.to_owned(),
                    line: at,
                    what,
                });
            }
        }
    }
    reading.finish().map_err(|what| CassetteError {
        file: file.to_owned(),
        line: 1,
        what,
    })
}

/// A file on its way.
#[derive(Default)]
struct Reading {
    begun: bool,
    salt: Salt,
    open: Option<Call>,
    calls: Vec<Call>,
}

impl Reading {
    fn take(&mut self, written: &str) -> Result<(), String> {
        if written.trim().is_empty() {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(written).map_err(|error| {
            let what = error.to_string();
            // The place it names is in a text of one line.
            let what = what.split(" at line ").next().unwrap_or_default();
            format!("this is not a line of a cassette: {what}")
        })?;
        if !self.begun && !matches!(line, Line::Cassette { .. }) {
            return Err(NO_HEADER.to_owned());
        }
        match line {
            Line::Cassette { version, .. } if version != VERSION => Err(format!(
                "this is version {version} of the format; version {VERSION} can be read"
            )),
            Line::Cassette { salt, .. } => {
                self.begun = true;
                let salt = salt.map(|salt| Salt::read(&salt)).transpose()?;
                self.salt = salt.unwrap_or_default();
                self.free("a cassette")
            }
            Line::Call(opening) => {
                self.free("a call")?;
                self.open = Some(opening.call(self.salt.clone()));
                Ok(())
            }
            Line::Chunk(piece) => {
                let chunk = piece.chunk()?;
                self.open.as_mut().ok_or(NO_CALL)?.chunks.push(chunk);
                Ok(())
            }
            Line::End(closing) => self.end(closing),
        }
    }

    fn end(&mut self, closing: Closing) -> Result<(), String> {
        let ending = closing.ending()?;
        let mut call = self.open.take().ok_or(NO_CALL)?;
        if call.answer.is_none() && ending == Ending::End {
            return Err("a call that ended well has a `status`".to_owned());
        }
        if self.calls.len() == CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} calls"));
        }
        call.ended_after = closing.after();
        call.ending = ending;
        self.calls.push(call);
        Ok(())
    }

    /// Only between calls something may begin.
    fn free(&self, what: &str) -> Result<(), String> {
        match &self.open {
            None => Ok(()),
            Some(_) => Err(format!(
                "{what} begins, and the call before it has no `end`"
            )),
        }
    }

    fn finish(self) -> Result<Vec<Call>, String> {
        match self.begun {
            true => Ok(self.calls),
            false => Err(NO_HEADER.to_owned()),
        }
    }
}

const NO_HEADER: &str = r#"the first line of a cassette is {"type":"cassette","version":1}"#;
const NO_CALL: &str = "this belongs to a call, and none has begun";

#[cfg(test)]
mod tests;
