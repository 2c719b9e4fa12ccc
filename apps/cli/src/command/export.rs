//! `turnwire export`: writes a session into one file.
//!
//! A server may append while the file is written. The rows are read first and the end of the log
//! after them, so that every event to which a row refers is in the file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use turnwire_event::content::content_json;
use turnwire_event::{Clock as _, Position, SessionId};
use turnwire_log::chain::ChainHash;
use turnwire_session::SystemClock;

use crate::args::ExportArgs;
use crate::connect;
use crate::new_file::{ExistingFile, NewFile};
use crate::session_file::record::{
    ExportEnd, ExportHead, ExportSource, FORMAT, LogStart, MessageRecord, ModelCallRecord,
    RecordKind, SessionLine, ToolRecord, TurnRecord, VERSION, hex,
};
use crate::session_file::writer::SessionFileWriter;
use crate::session_source::{SessionSource, rows::RowSource};

/// Writes the file and prints a line about it to standard error.
pub(crate) async fn run(args: &ExportArgs) -> Result<()> {
    let session = args.source.session;
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{session}.jsonl")));
    let source = connect::source(&args.source)?;
    let end = if output == Path::new("-") {
        let (mut out, end) = export(&source, session, io::stdout().lock())
            .await
            .with_context(|| connect::context(&args.source))?;
        out.flush()?;
        end
    } else {
        let writing = || format!("writing {}", output.display());
        let existing = ExistingFile::with_force(args.force);
        let file = NewFile::create(&output, existing).with_context(writing)?;
        let (file, end) = export(&source, session, file)
            .await
            .with_context(|| connect::context(&args.source))?;
        file.finish().with_context(writing)?;
        end
    };
    eprintln!(
        "{}: {} events, {} records, SHA-256 {}",
        output.display(),
        end.events,
        end.records,
        end.sha256
    );
    Ok(())
}

async fn export<W: Write>(
    source: &SessionSource,
    session: SessionId,
    out: W,
) -> Result<(W, ExportEnd)> {
    let mut file = SessionFileWriter::new(out);
    let rows = RowSource::new(source, session);
    let head = ExportHead {
        format: FORMAT.to_owned(),
        version: VERSION,
        turnwire: env!("CARGO_PKG_VERSION").to_owned(),
        exported_at: SystemClock.now(),
        source: match source {
            SessionSource::Server(_) => ExportSource::Server,
            SessionSource::Folder(_) => ExportSource::Folder,
        },
        session_id: session,
        // Before any row is read.
        rows_seq: rows.last_seq().await?.0,
    };
    file.write(RecordKind::Export, &head)?;
    let row = rows.session().await?;
    file.write(RecordKind::Session, &SessionLine { session: row })?;
    write_rows(&rows, &mut file).await?;
    write_log(source, session, &mut file).await?;
    file.finish()
}

async fn write_rows<W: Write>(rows: &RowSource<'_>, file: &mut SessionFileWriter<W>) -> Result<()> {
    let mut before = None;
    loop {
        let (page, next) = rows.turns(before).await?;
        for turn in page {
            file.write(RecordKind::Turn, &TurnRecord { turn })?;
        }
        before = next;
        if before.is_none() {
            break;
        }
    }
    let mut before = None;
    loop {
        let (page, next) = rows.tool_calls(before).await?;
        for tool_call in page {
            file.write(RecordKind::ToolCall, &ToolRecord { tool_call })?;
        }
        before = next;
        if before.is_none() {
            break;
        }
    }
    let mut before = None;
    loop {
        let (page, next) = rows.llm_calls(before).await?;
        for llm_call in page {
            file.write(RecordKind::LlmCall, &ModelCallRecord { llm_call })?;
        }
        before = next;
        if before.is_none() {
            break;
        }
    }
    let mut before = None;
    loop {
        let (page, next) = rows.messages(before).await?;
        for (message, completed, scope) in page {
            let record = MessageRecord {
                content_sha256: content_json(&message.content).1,
                message,
                completed,
                scope,
            };
            file.write(RecordKind::Message, &record)?;
        }
        before = next;
        if before.is_none() {
            return Ok(());
        }
    }
}

async fn write_log<W: Write>(
    source: &SessionSource,
    session: SessionId,
    file: &mut SessionFileWriter<W>,
) -> Result<()> {
    let mut page = source.events(session, None).await?;
    let first = match page.events.first() {
        Some((bytes, _)) => first_seq(bytes)?,
        None => source.low(session)?,
    };
    let start = LogStart {
        after: first,
        hash: hex(&page.previous.0),
    };
    file.write(RecordKind::Log, &start)?;
    file.begin_log(turnwire_event::Seq(first), page.previous);
    let mut hash = page.previous;
    loop {
        for (bytes, stored) in &page.events {
            hash = checked(hash, bytes, *stored)?;
            file.write_event(bytes, *stored)?;
        }
        page.check_damage()?;
        if page.next.is_none() {
            return Ok(());
        }
        page = source.events(session, page.next).await?;
    }
}

/// The number before that of an event.
fn first_seq(bytes: &[u8]) -> Result<u64> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Position,
    }
    let head: Head = serde_json::from_slice(bytes).context("the first event cannot be read")?;
    Ok(head.id.seq.0.saturating_sub(1))
}

/// The stored hash of an event, if it matches its bytes.
fn checked(previous: ChainHash, bytes: &[u8], stored: ChainHash) -> Result<ChainHash> {
    if previous.next(bytes) != stored {
        bail!("an event does not match its hash; see `turnwire verify`");
    }
    Ok(stored)
}
