//! The file of API tokens: a JSON list of hashes with their owners and scopes.
//!
//! The server reads it; `turnwire token` edits it, also while servers run. It is replaced as a whole,
//! so that no reader sees half of it, and two edits do not lose each other.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use turnwire_event::{Owner, Timestamp};

use crate::scope::{Scope, ScopeSet};
use crate::token::{NewToken, TokenHash};

/// The largest file that is read: about 30,000 tokens.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// The longest label, in characters.
const LABEL_CHARS_MAX: usize = 100;

/// An API token as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// The name by which it is listed and revoked.
    pub id: String,
    /// Who sends requests with it.
    pub owner: Owner,
    /// What they may do.
    pub scopes: ScopeSet,
    /// What it is for, in the words of who created it.
    pub label: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ends; `None` if it has no end.
    pub expires_at: Option<Timestamp>,
}

impl TokenRecord {
    /// True once the token has ended.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }
}

/// What a new token is for.
#[derive(Clone, Debug)]
pub struct TokenGrant {
    /// Who will send requests with it.
    pub owner: Owner,
    /// What they will be allowed.
    pub scopes: ScopeSet,
    /// What it is for.
    pub label: Option<String>,
    /// When it ends; `None` for no end.
    pub expires_at: Option<Timestamp>,
}

/// All tokens of a file.
pub type TokenTable = HashMap<TokenHash, TokenRecord>;

/// Why the file cannot be used. For operators: it names the file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read or written.
    #[error("{path}: {cause}")]
    Io {
        /// As in the settings.
        path: String,
        /// What the operating system says.
        cause: io::Error,
    },
    /// The file does not contain a list of tokens.
    #[error("{path}: {problem}")]
    Malformed {
        /// As in the settings.
        path: String,
        /// What is wrong, with line and column where they are known.
        problem: String,
    },
    /// Others than the user of the server can change the file.
    #[error("{path}: others can change it; run: chmod 600 {path}")]
    Writable {
        /// As in the settings.
        path: String,
    },
    /// No token of the file has this id.
    #[error("there is no token `{0}`")]
    UnknownToken(String),
    /// The label of a new token is too long.
    #[error("a label has at most {LABEL_CHARS_MAX} characters")]
    LongLabel,
    /// The operating system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    tokens: Vec<StoredToken>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    sha256: String,
    tenant: String,
    principal: String,
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// The state of a file by which a change is noticed; `None` while there is no file.
pub type FileStamp = Option<(u64, i64, i64, u64)>;

/// The [`FileStamp`] of a file now.
pub fn file_stamp(path: &Path) -> FileStamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
}

/// A file of API tokens.
#[derive(Clone, Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// The file at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads all tokens. A file that does not exist has none; one that others can change is refused.
    pub fn read(&self) -> Result<TokenTable, TokenFileError> {
        let mut table = TokenTable::new();
        for (hash, record) in self.records()? {
            if table.insert(hash, record).is_some() {
                return Err(self.malformed(format!("the token {} is there twice", hash.id())));
            }
        }
        Ok(table)
    }

    /// The tokens in the order of the file, which is that of their creation.
    pub fn records(&self) -> Result<Vec<(TokenHash, TokenRecord)>, TokenFileError> {
        let mut text = Vec::new();
        let file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io(error)),
        };
        let meta = file.metadata().map_err(|error| self.io(error))?;
        if meta.mode() & 0o022 != 0 {
            let path = self.0.display().to_string();
            return Err(TokenFileError::Writable { path });
        }
        let mut limited = file.take(FILE_BYTES_MAX + 1);
        limited
            .read_to_end(&mut text)
            .map_err(|error| self.io(error))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(self.malformed(format!("above {FILE_BYTES_MAX} bytes")));
        }
        let stored: StoredFile =
            serde_json::from_slice(&text).map_err(|error| self.malformed(error.to_string()))?;
        let numbered = stored.tokens.into_iter().enumerate();
        numbered
            .map(|(index, token)| {
                let wrong = |what| self.malformed(format!("token {}: {what}", index + 1));
                record_of(token).map_err(wrong)
            })
            .collect()
    }

    /// Adds a random token, which is returned and stored nowhere.
    pub fn create(
        &self,
        grant: TokenGrant,
        now: Timestamp,
    ) -> Result<(NewToken, TokenRecord), TokenFileError> {
        let is_long = |label: &String| label.chars().count() > LABEL_CHARS_MAX;
        if grant.label.as_ref().is_some_and(is_long) {
            return Err(TokenFileError::LongLabel);
        }
        let token = NewToken::random().map_err(TokenFileError::Random)?;
        let hash = token.hash();
        let record = TokenRecord {
            id: hash.id(),
            owner: grant.owner,
            scopes: grant.scopes,
            label: grant.label,
            created_at: now,
            expires_at: grant.expires_at,
        };
        let added = record.clone();
        self.edit(move |records| {
            records.push((hash, added));
            Ok(())
        })?;
        Ok((token, record))
    }

    /// Removes the token with this id and returns what it was.
    pub fn revoke(&self, id: &str) -> Result<TokenRecord, TokenFileError> {
        self.edit(|records| {
            let index = records.iter().position(|(_, record)| record.id == id);
            let index = index.ok_or_else(|| TokenFileError::UnknownToken(id.to_owned()))?;
            Ok(records.remove(index).1)
        })
    }

    /// Applies `change` to the list and replaces the file, while no other edit can.
    fn edit<T>(
        &self,
        change: impl FnOnce(&mut Vec<(TokenHash, TokenRecord)>) -> Result<T, TokenFileError>,
    ) -> Result<T, TokenFileError> {
        // The first token is often created before the first start of the server.
        if let Some(folder) = self.0.parent() {
            let mut builder = fs::DirBuilder::new();
            let created = builder.recursive(true).mode(0o700).create(folder);
            created.map_err(|error| self.io(error))?;
        }
        let lock = self.beside("lock");
        let lock = private_file(&lock).map_err(|error| self.io(error))?;
        lock.lock().map_err(|error| self.io(error))?;
        let mut records = self.records()?;
        let changed = change(&mut records)?;
        self.replace(&records).map_err(|error| self.io(error))?;
        Ok(changed)
    }

    fn replace(&self, records: &[(TokenHash, TokenRecord)]) -> io::Result<()> {
        let tokens = records.iter().map(stored_of).collect();
        let mut text = serde_json::to_vec_pretty(&StoredFile { tokens })?;
        text.push(b'\n');
        let next = self.beside("next");
        let mut file = private_file(&next)?;
        file.set_len(0)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&next, &self.0)?;
        let folder = self.0.parent().filter(|folder| *folder != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// The path with one more ending.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(format!(".{ending}"));
        name.into()
    }

    fn io(&self, cause: io::Error) -> TokenFileError {
        let path = self.0.display().to_string();
        TokenFileError::Io { path, cause }
    }

    fn malformed(&self, problem: String) -> TokenFileError {
        let path = self.0.display().to_string();
        TokenFileError::Malformed { path, problem }
    }
}

/// Opens a file for writing that only the user can read; creates it if it is missing.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path)
}

fn record_of(token: StoredToken) -> Result<(TokenHash, TokenRecord), String> {
    let hash = TokenHash::parse(&token.sha256).ok_or("`sha256` must be 64 hexadecimal digits")?;
    let tenant = token.tenant.parse();
    let principal = token.principal.parse();
    let scopes: Result<ScopeSet, _> = token.scopes.iter().map(|s| s.parse::<Scope>()).collect();
    let record = TokenRecord {
        id: hash.id(),
        owner: Owner {
            tenant: tenant.map_err(|_| "`tenant` must be a UUID")?,
            principal: principal
                .map_err(|_| "`principal` must be 1 to 128 printable ASCII characters")?,
        },
        scopes: scopes.map_err(|unknown| unknown.to_string())?,
        label: token.label,
        created_at: token.created_at,
        expires_at: token.expires_at,
    };
    Ok((hash, record))
}

fn stored_of((hash, record): &(TokenHash, TokenRecord)) -> StoredToken {
    StoredToken {
        sha256: hash.to_string(),
        tenant: record.owner.tenant.to_string(),
        principal: record.owner.principal.to_string(),
        scopes: record.scopes.iter().map(|s| s.name().to_owned()).collect(),
        label: record.label.clone(),
        created_at: record.created_at,
        expires_at: record.expires_at,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use turnwire_event::TenantId;

    fn grant(principal: &str) -> TokenGrant {
        TokenGrant {
            owner: Owner {
                tenant: TenantId(7),
                principal: principal.parse().expect("a principal"),
            },
            scopes: [Scope::Own].into_iter().collect(),
            label: None,
            expires_at: None,
        }
    }

    fn file() -> (tempfile::TempDir, TokenFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TokenFile::new(folder.path().join("home/tokens.json"));
        (folder, file)
    }

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    #[test]
    fn created_token_is_found_until_it_is_revoked() {
        let (_folder, file) = file();
        assert_eq!(file.read().expect("no tokens").len(), 0);
        let (ann, record) = file.create(grant("ann"), NOW).expect("a token");
        file.create(grant("bob"), NOW).expect("a token");
        let table = file.read().expect("tokens");
        assert_eq!(table.len(), 2);
        assert_eq!(table.get(&TokenHash::of(ann.reveal())), Some(&record));
        assert_eq!(file.revoke(&record.id).expect("revoked"), record);
        let table = file.read().expect("tokens");
        assert!(!table.contains_key(&ann.hash()) && table.len() == 1);
        let again = file.revoke(&record.id);
        assert!(matches!(again, Err(TokenFileError::UnknownToken(_))));
    }

    #[test]
    fn file_is_private_and_has_no_token_in_it() {
        let (_folder, file) = file();
        let (token, _) = file.create(grant("ann"), NOW).expect("a token");
        let text = fs::read_to_string(file.path()).expect("text");
        assert!(!text.contains(token.reveal()), "{text}");
        let meta = fs::metadata(file.path()).expect("a file");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        let set_mode = |mode| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).expect("a mode");
        };
        // As a secret of Kubernetes is mounted.
        set_mode(0o440);
        assert_eq!(file.read().expect("tokens").len(), 1);
        for mode in [0o620, 0o602] {
            set_mode(mode);
            let refused = file.read().expect_err("others can change it");
            assert!(
                matches!(refused, TokenFileError::Writable { .. }),
                "{refused}"
            );
        }
    }

    #[test]
    fn edits_at_once_are_all_kept() {
        let (_folder, file) = file();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let file = &file;
                scope.spawn(move || {
                    for m in 0..5 {
                        file.create(grant(&format!("p{n}-{m}")), NOW)
                            .expect("a token");
                    }
                });
            }
        });
        assert_eq!(file.read().expect("tokens").len(), 40);
    }

    #[test]
    fn malformed_file_is_refused_with_its_place() {
        let (_folder, file) = file();
        let token = |field: &str, value: &str| {
            let mut token = serde_json::json!({
                "sha256": "00".repeat(32), "tenant": "00000000-0000-0000-0000-000000000007",
                "principal": "ann", "scopes": ["own"], "created_at": "2026-01-01T00:00:00Z"});
            token[field] = serde_json::from_str(value).expect("JSON");
            token
        };
        let write = |text: String| {
            fs::create_dir_all(file.path().parent().expect("a folder")).expect("a folder");
            fs::write(file.path(), text).expect("written");
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).expect("a mode");
        };
        let list =
            |tokens: &[serde_json::Value]| serde_json::json!({ "tokens": tokens }).to_string();
        let fine = token("principal", "\"bob\"");
        for (text, said) in [
            ("{".to_owned(), "line 1"),
            (list(&[token("sha256", "\"zz\"")]), "token 1: `sha256`"),
            (
                list(&[fine.clone(), token("tenant", "\"7\"")]),
                "token 2: `tenant`",
            ),
            (
                list(&[token("principal", "\"a b\"")]),
                "token 1: `principal`",
            ),
            (
                list(&[token("scopes", "[\"root\"]")]),
                "unknown scope `root`",
            ),
            (list(&[token("scope", "[]")]), "unknown field `scope`"),
            (list(&[fine.clone(), fine.clone()]), "twice"),
        ] {
            write(text);
            let refused = file.read().expect_err("malformed").to_string();
            assert!(refused.contains(said), "{refused}");
            assert!(refused.contains("tokens.json"), "{refused}");
        }
        write(list(&[fine]));
        assert_eq!(file.read().expect("tokens").len(), 1);
    }

    #[test]
    fn stamp_changes_with_every_edit() {
        let (_folder, file) = file();
        assert_eq!(file_stamp(file.path()), None);
        file.create(grant("ann"), NOW).expect("a token");
        let first = file_stamp(file.path());
        file.create(grant("ann"), NOW).expect("a token");
        assert!(first.is_some() && file_stamp(file.path()) != first);
    }
}
