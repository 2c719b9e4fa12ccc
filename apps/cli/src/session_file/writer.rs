//! Writes the records of a session file, and the digest at its end.

use std::io::{BufWriter, Write};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use turnwire_event::Seq;
use turnwire_log::chain::ChainHash;

use crate::session_file::record::{EventRecord, ExportEnd, LINE_BYTES_MAX, Line, RecordKind, hex};

/// Writes one session file to `W`.
pub(crate) struct SessionFileWriter<W: Write> {
    out: BufWriter<W>,
    digest: Sha256,
    records: u64,
    events: u64,
    /// The number of the last event, and the hash of the chain there.
    tail: (Seq, ChainHash),
}

impl<W: Write> SessionFileWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 20, out),
            digest: Sha256::new(),
            records: 0,
            events: 0,
            tail: (Seq(0), ChainHash([0; 32])),
        }
    }

    /// Appends a line and adds it to the digest.
    pub(crate) fn write<T: Serialize>(&mut self, record: RecordKind, fields: &T) -> Result<()> {
        let line = line(record, fields)?;
        self.digest.update(&line);
        self.records += 1;
        Ok(self.out.write_all(&line)?)
    }

    /// The log begins after `seq`.
    pub(crate) fn begin_log(&mut self, seq: Seq, hash: ChainHash) {
        self.tail = (seq, hash);
    }

    /// Writes the next event from its stored bytes.
    pub(crate) fn write_event(&mut self, bytes: &[u8], hash: ChainHash) -> Result<()> {
        let seq = self.tail.0.next();
        let text = std::str::from_utf8(bytes).ok();
        // A line ends at the first line feed.
        let text = text.filter(|text| !text.contains(['\n', '\r']));
        let event = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let event = event.filter(|event| event.get().len() == bytes.len());
        let event = event.with_context(|| format!("event {} is no line of JSON", seq.0))?;
        let hash_text = hex(&hash.0);
        self.write(
            RecordKind::Event,
            &EventRecord {
                hash: hash_text,
                event,
            },
        )?;
        self.events += 1;
        self.tail = (seq, hash);
        Ok(())
    }

    /// Writes the end, and returns it with the target.
    pub(crate) fn finish(mut self) -> Result<(W, ExportEnd)> {
        let end = ExportEnd {
            records: self.records,
            events: self.events,
            last_seq: self.tail.0.0,
            hash: hex(&self.tail.1.0),
            sha256: hex(&self.digest.finalize().into()),
        };
        self.out.write_all(&line(RecordKind::End, &end)?)?;
        let out = self.out.into_inner().map_err(|error| error.into_error())?;
        Ok((out, end))
    }
}

fn line<T: Serialize>(record: RecordKind, fields: &T) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line { record, fields })?;
    line.push(b'\n');
    let bytes = line.len();
    ensure!(
        bytes <= LINE_BYTES_MAX,
        "a record has {bytes} bytes, and a line may have {LINE_BYTES_MAX}"
    );
    Ok(line)
}
