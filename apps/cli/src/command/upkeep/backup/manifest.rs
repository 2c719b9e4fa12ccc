//! The manifest of a backup: what is in it, and the digest of each file.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use turnwire_event::Timestamp;
use turnwire_log::private;
use turnwire_log::sqlite::{CheckDepth, CheckedChains, DatabaseContent};

use crate::session_file::record::hex;

/// The name of the manifest in a backup.
pub(super) const MANIFEST_FILE: &str = "manifest.json";
/// The largest manifest that is read: some thousand files.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
const FORMAT: &str = "turnwire.backup";
const VERSION: u32 = 1;

/// The size and the SHA-256 of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContentDigest {
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// A file beside the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileDigest {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) digest: ContentDigest,
}

/// Counts and digest of the copied database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DatabaseEntry {
    /// The number of the last migration.
    pub(super) schema: u32,
    pub(super) sessions: u64,
    pub(super) events: u64,
    pub(super) newest_event: Option<Timestamp>,
    #[serde(flatten)]
    pub(super) digest: ContentDigest,
}

/// What was checked after the copy was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckEntry {
    pub(super) kind: CheckKind,
    pub(super) sessions: u64,
    pub(super) events: u64,
}

/// How much was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckKind {
    Sample,
    Full,
}

/// The manifest of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    /// The version of the program that wrote the backup.
    turnwire: String,
    created_at: Timestamp,
    pub(super) database: DatabaseEntry,
    pub(super) files: Vec<FileDigest>,
    pub(super) checked: CheckEntry,
}

impl Manifest {
    pub(super) fn new(
        created_at: Timestamp,
        content: &DatabaseContent,
        digest: ContentDigest,
        files: Vec<FileDigest>,
        depth: CheckDepth,
        checked: CheckedChains,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            turnwire: env!("CARGO_PKG_VERSION").to_owned(),
            created_at,
            database: DatabaseEntry {
                schema: content.schema,
                sessions: content.sessions,
                events: content.events,
                newest_event: content.newest_event,
                digest,
            },
            files,
            checked: CheckEntry {
                kind: match depth {
                    CheckDepth::Full => CheckKind::Full,
                    CheckDepth::Sample { .. } => CheckKind::Sample,
                },
                sessions: checked.sessions,
                events: checked.events,
            },
        }
    }

    /// The manifest of the backup in `dir`.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST_FILE);
        let read = || -> Result<Self> {
            let bytes = private::read_file(&path, MANIFEST_BYTES_MAX)?;
            Ok(serde_json::from_slice(&bytes)?)
        };
        let manifest = read().with_context(|| format!("reading {}", path.display()))?;
        let (format, version) = (&manifest.format, manifest.version);
        ensure!(
            format == FORMAT && version == VERSION,
            "{} has the format {format:?} in version {version}; this program reads {FORMAT:?} in version {VERSION}",
            path.display()
        );
        Ok(manifest)
    }
}

/// Reads a file for its size and its SHA-256.
pub(super) fn digest(path: &Path) -> Result<ContentDigest> {
    let mut file = private::open_to_read(path)?;
    let mut sha256 = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                sha256.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
    let sha256 = hex(&sha256.finalize().into());
    Ok(ContentDigest { bytes, sha256 })
}
