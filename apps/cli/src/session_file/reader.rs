//! Reads a session file line by line, in bounded memory, and checks its order, its counts and its
//! digest.
//!
//! Every refusal is a [`FileFault`] with the number of its line: a file that is cut, reordered, edited
//! or no session file.

use std::io::{self, BufRead, Read as _};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::session_file::record::{
    ExportEnd, ExportHead, FORMAT, LINE_BYTES_MAX, RecordKind, VERSION, hex,
};

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFault {
    /// The line, from 1.
    pub(crate) line: u64,
    /// Completes a sentence whose subject is the line.
    pub(crate) description: String,
}

/// Reading stopped: the file is refused, or the disk failed.
#[derive(Debug)]
pub(crate) enum ReadFault {
    /// The file is no intact session file.
    File(FileFault),
    /// The file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A line with the kind of its record.
#[derive(Debug)]
pub(crate) struct ReadRecord {
    pub(crate) kind: RecordKind,
    /// The line, from 1.
    pub(crate) line: u64,
    bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct KindOf {
    record: RecordKind,
}

impl ReadRecord {
    /// The fields of the record.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ReadFault> {
        serde_json::from_slice(&self.bytes)
            .map_err(|error| self.fault(format!("cannot be read: {error}")))
    }

    /// The size of the line.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn fault(&self, description: impl Into<String>) -> ReadFault {
        fault(self.line, description)
    }
}

fn fault(line: u64, description: impl Into<String>) -> ReadFault {
    ReadFault::File(FileFault {
        line,
        description: description.into(),
    })
}

/// Reads the records of a session file.
pub(crate) struct SessionFileReader<R: BufRead> {
    input: R,
    digest: Sha256,
    line: u64,
    events: u64,
    last: Option<RecordKind>,
}

impl<R: BufRead> SessionFileReader<R> {
    /// Reads the head of a file.
    pub(crate) fn open(input: R) -> Result<(Self, ExportHead), ReadFault> {
        let mut reader = Self {
            input,
            digest: Sha256::new(),
            line: 0,
            events: 0,
            last: None,
        };
        let record = match reader.next() {
            Ok(Some(record)) if record.kind == RecordKind::Export => record,
            Err(ReadFault::Io(error)) => return Err(error.into()),
            _ => return Err(fault(1, "is not the begin of a file of `turnwire export`")),
        };
        // Before the rest: another version may have other fields.
        #[derive(Deserialize)]
        struct Version {
            format: String,
            version: u32,
        }
        let found: Version = record.parse()?;
        if found.format != FORMAT {
            return Err(record.fault(format!("has the unknown format {:?}", found.format)));
        }
        if found.version != VERSION {
            let version = found.version;
            return Err(record.fault(format!(
                "has version {version} of the format; this program reads version {VERSION}"
            )));
        }
        let head = record.parse()?;
        Ok((reader, head))
    }

    /// The next record; `None` after the end record, when the whole file matches its digest.
    pub(crate) fn next(&mut self) -> Result<Option<ReadRecord>, ReadFault> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
        limited.read_until(b'\n', &mut bytes)?;
        let line = self.line + 1;
        let is_over = self.last == Some(RecordKind::End);
        match (bytes.is_empty(), is_over) {
            (true, true) => return Ok(None),
            (false, true) => return Err(fault(line, "comes after the end record")),
            (true, false) => {
                return Err(fault(
                    line,
                    "is missing: the file ends without its end record",
                ));
            }
            (false, false) => {}
        }
        if bytes.len() > LINE_BYTES_MAX {
            let text = format!("has more than {LINE_BYTES_MAX} bytes");
            return Err(fault(line, text));
        }
        if bytes.last() != Some(&b'\n') {
            return Err(fault(line, "is cut: the file ends within it"));
        }
        let KindOf { record: kind } = serde_json::from_slice(&bytes)
            .map_err(|error| fault(line, format!("is no record of a session file: {error}")))?;
        if let Some(why) = self.misplaced(kind) {
            return Err(fault(line, why));
        }
        self.line = line;
        self.last = Some(kind);
        self.events += u64::from(kind == RecordKind::Event);
        let record = ReadRecord { kind, line, bytes };
        match kind {
            RecordKind::End => self.check_end(&record)?,
            _ => self.digest.update(&record.bytes),
        }
        Ok(Some(record))
    }

    /// Why a record of this kind cannot follow the last one.
    fn misplaced(&self, kind: RecordKind) -> Option<String> {
        let name = |kind: RecordKind| serde_json::to_string(&kind).unwrap_or_default();
        let Some(last) = self.last else {
            return None; // the first record is checked by `open`
        };
        if kind < last || (kind == last && !kind.repeats()) {
            let (kind, last) = (name(kind), name(last));
            return Some(format!("a record {kind} cannot follow a record {last}"));
        }
        let missing = match kind {
            RecordKind::Export => None,
            RecordKind::Session => None,
            RecordKind::Event | RecordKind::End if last < RecordKind::Log => Some(RecordKind::Log),
            _ if last < RecordKind::Session => Some(RecordKind::Session),
            _ => None,
        };
        missing.map(|missing| format!("the record {} before it is missing", name(missing)))
    }

    fn check_end(&self, record: &ReadRecord) -> Result<(), ReadFault> {
        let end: ExportEnd = record.parse()?;
        let digest = hex(&self.digest.clone().finalize().into());
        if end.sha256 != digest {
            return Err(record.fault(format!(
                "has the SHA-256 {} of the lines before it, but they have {digest}: the file was changed",
                end.sha256
            )));
        }
        let found = (self.line - 1, self.events);
        if (end.records, end.events) != found {
            return Err(record.fault(format!(
                "counts {} records and {} events, but there are {} and {}",
                end.records, end.events, found.0, found.1
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
