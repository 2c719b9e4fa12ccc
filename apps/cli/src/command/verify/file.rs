//! Checks the file of an export: its lines, its digest, and the log and the rows in it, as a folder is
//! checked.
//!
//! Memory does not grow with the size of the file but with the number of its rows: a message is kept as
//! its hash, a turn and a tool call as their rows, up to [`KEPT_BYTES_MAX`].

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use turnwire_event::{Seq, SessionId};
use turnwire_log::chain::ChainHash;

use crate::log_check::session_log::{LogVerdict, LogVerifier};
use crate::log_check::stored_contents::StoredContents;
use crate::log_check::stored_rows::{CheckedTurn, RowVerifier, SessionRows};
use crate::session_file::reader::{ReadFault, ReadRecord, SessionFileReader};
use crate::session_file::record::{
    ExportEnd, ExportHead, ExportSource, LogStart, MessageRecord, ModelCallRecord, ReadEvent,
    RecordKind, SessionLine, ToolRecord, TurnRecord,
};
use crate::session_source::parse_hash;

/// The most that is kept of the rows: 1 GiB are some millions of turns.
const KEPT_BYTES_MAX: usize = 1 << 30;
/// What is kept of a message, and of each tool result in it.
const MESSAGE_KEPT_BYTES: usize = 256;

/// The result of a check.
#[derive(Debug)]
pub(super) struct CheckedFile {
    pub(super) session: SessionId,
    pub(super) source: ExportSource,
    pub(super) verdict: LogVerdict,
    /// The digest of a file that was read to its end.
    pub(super) sha256: Option<String>,
}

impl CheckedFile {
    /// What the file is, for people.
    pub(super) fn name(&self) -> String {
        let source = match self.source {
            ExportSource::Server => "from a server",
            ExportSource::Folder => "from a data folder",
        };
        format!("{} {source}", self.session)
    }
}

/// Checks the file at `path`. An error means that the check could not run.
pub(super) fn verify(path: &Path) -> Result<CheckedFile> {
    let file = File::open(path)?;
    ensure!(file.metadata()?.is_file(), "it is not a regular file");
    let input = BufReader::with_capacity(1 << 20, file);
    let (reader, head) = match SessionFileReader::open(input) {
        Ok(opened) => opened,
        Err(fault) => return refused(fault),
    };
    let mut check = FileCheck::new(reader, head);
    let outcome = check.run();
    check.finish(outcome)
}

/// A file whose head cannot be read has no session to report on.
fn refused(fault: ReadFault) -> Result<CheckedFile> {
    match fault {
        ReadFault::Io(error) => Err(error.into()),
        ReadFault::File(fault) => {
            anyhow::bail!("line {} {}", fault.line, fault.description)
        }
    }
}

/// The rows of the file until its log begins, and the check of the log from then on.
enum Stage {
    Rows(SessionRows, StoredContents),
    Log(Box<LogVerifier>, Box<RowVerifier>),
    Over,
}

struct FileCheck {
    reader: SessionFileReader<BufReader<File>>,
    head: ExportHead,
    stage: Stage,
    kept_bytes: usize,
    /// The number before the first event.
    low: Seq,
    sha256: Option<String>,
}

impl FileCheck {
    fn new(reader: SessionFileReader<BufReader<File>>, head: ExportHead) -> Self {
        let rows = SessionRows {
            upto: Seq(head.rows_seq),
            ..SessionRows::default()
        };
        Self {
            reader,
            head,
            stage: Stage::Rows(rows, StoredContents::default()),
            kept_bytes: 0,
            low: Seq(0),
            sha256: None,
        }
    }

    fn run(&mut self) -> Result<(), ReadFault> {
        while let Some(record) = self.reader.next()? {
            self.check(&record)?;
        }
        Ok(())
    }

    fn check(&mut self, record: &ReadRecord) -> Result<(), ReadFault> {
        let session = self.head.session_id;
        match (record.kind, &mut self.stage) {
            (RecordKind::Export, _) => Ok(()),
            (RecordKind::Session, _) => {
                let row: SessionLine = record.parse()?;
                match row.session.session.session_id == session {
                    true => Ok(()),
                    false => Err(record.fault("is the row of another session")),
                }
            }
            (RecordKind::Turn, Stage::Rows(rows, _)) => {
                let row: TurnRecord = record.parse()?;
                if row.turn.session_id != session {
                    return Err(record.fault("is a turn of another session"));
                }
                let turn = CheckedTurn::from(row.turn);
                let newest = rows.last_reference.as_ref().map(|(at, _)| *at);
                if let Some(at) = turn
                    .last_reference()
                    .filter(|at| newest.is_none_or(|it| *at > it))
                {
                    rows.last_reference = Some((at, format!("turn {}", turn.id())));
                }
                rows.turns.push(turn);
                self.keep(record, record.size())
            }
            (RecordKind::ToolCall, Stage::Rows(rows, _)) => {
                let row: ToolRecord = record.parse()?;
                rows.tools.push(row.tool_call);
                self.keep(record, record.size())
            }
            (RecordKind::LlmCall, _) => record.parse::<ModelCallRecord>().map(drop),
            (RecordKind::Message, Stage::Rows(rows, contents)) => {
                let row: MessageRecord = record.parse()?;
                if row.message.session_id != session {
                    return Err(record.fault("is a message of another session"));
                }
                contents.add(&row.message);
                let is_whole = contents
                    .get(row.message.id)
                    .is_some_and(|digest| digest.content.is(&row.content_sha256));
                if !is_whole {
                    return Err(record.fault(format!(
                        "is message {}, whose content does not match its hash",
                        row.message.id
                    )));
                }
                let newest = rows.last_reference.as_ref().map(|(at, _)| *at);
                if let Some(at) = row.completed.filter(|at| newest.is_none_or(|it| *at > it)) {
                    rows.last_reference = Some((at, format!("message {}", row.message.id)));
                }
                let results = row.message.content.len();
                self.keep(record, MESSAGE_KEPT_BYTES * (1 + results))
            }
            (RecordKind::Log, Stage::Rows(..)) => self.begin_log(record),
            (RecordKind::Event, Stage::Log(log, rows)) => {
                let event: ReadEvent = record.parse()?;
                let hash = stored_hash(record, &event.hash)?;
                let bytes = Bytes::copy_from_slice(event.event.get().as_bytes());
                let is_first = log.last().is_none();
                for (at, description) in rows.check(&bytes, None) {
                    log.violate(at, description);
                }
                log.check(&bytes, hash);
                match log.last() {
                    Some(first) if is_first && first.seq != self.low.next() => {
                        Err(record.fault("is not the first event after the begin of the log"))
                    }
                    _ => Ok(()),
                }
            }
            (RecordKind::End, _) => {
                let end: ExportEnd = record.parse()?;
                if let Stage::Log(log, _) = &self.stage {
                    let last = log.last().map_or(self.low, |last| last.seq);
                    if last.0 != end.last_seq || stored_hash(record, &end.hash)? != log.hash() {
                        return Err(record.fault("names another last event"));
                    }
                }
                self.sha256 = Some(end.sha256);
                Ok(())
            }
            // The reader keeps the order of the kinds.
            _ => Err(record.fault("is out of order")),
        }
    }

    fn begin_log(&mut self, record: &ReadRecord) -> Result<(), ReadFault> {
        let start: LogStart = record.parse()?;
        let hash = stored_hash(record, &start.hash)?;
        let session = self.head.session_id;
        self.low = Seq(start.after);
        if let Stage::Rows(mut rows, contents) = std::mem::replace(&mut self.stage, Stage::Over) {
            let contents = Arc::new(contents);
            rows.messages = contents.clone();
            let log = LogVerifier::new(session, hash, contents);
            self.stage = Stage::Log(Box::new(log), Box::new(RowVerifier::new(rows)));
        }
        Ok(())
    }

    fn keep(&mut self, record: &ReadRecord, bytes: usize) -> Result<(), ReadFault> {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        match self.kept_bytes <= KEPT_BYTES_MAX {
            true => Ok(()),
            false => Err(record.fault("is beyond the rows that one check can keep")),
        }
    }

    /// Ends the check with the outcome of [`run`](Self::run).
    fn finish(self, outcome: Result<(), ReadFault>) -> Result<CheckedFile> {
        let fault = match outcome {
            Ok(()) => None,
            Err(ReadFault::File(fault)) => Some(fault),
            Err(ReadFault::Io(error)) => return Err(error).context("the file cannot be read"),
        };
        let (mut log, rows) = match self.stage {
            Stage::Log(log, rows) => (*log, Some(*rows)),
            Stage::Rows(..) | Stage::Over => {
                let seed = ChainHash::seed(self.head.session_id);
                let contents = StoredContents::default();
                (LogVerifier::new(self.head.session_id, seed, contents), None)
            }
        };
        match (fault, rows) {
            (Some(fault), _) => log.violate(format!("line {}", fault.line), fault.description),
            // Only a file that was read to its end has all events that its rows refer to.
            (None, Some(rows)) => {
                let end = log.last().map_or(self.low, |last| last.seq);
                for (event, description) in rows.finish(self.low, end) {
                    log.violate(event, description);
                }
            }
            (None, None) => {}
        }
        Ok(CheckedFile {
            session: self.head.session_id,
            source: self.head.source,
            verdict: log.finish(),
            sha256: self.sha256,
        })
    }
}

fn stored_hash(record: &ReadRecord, text: &str) -> Result<ChainHash, ReadFault> {
    parse_hash(text).map_err(|_| record.fault("has an invalid hash"))
}
