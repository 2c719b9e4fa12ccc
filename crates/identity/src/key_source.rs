//! Where the keys of an issuer come from: a file or a URL, loaded again when it may have changed.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use turnwire_dial::{DialError, Dialer, HttpMethod, HttpRequest, Url};

use crate::key_set::{KEY_SET_BYTES_MAX, KeySet, KeySetError};

/// How long a download may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// How often tokens with an unknown key can make the server look for new keys.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);

/// Where the key set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLocation {
    /// On the server, replaced when the keys change.
    File(PathBuf),
    /// A document of the issuer.
    Url(Url),
}

/// Why keys cannot be loaded. For operators.
#[derive(Debug, thiserror::Error)]
pub enum KeySourceError {
    /// The file cannot be read.
    #[error("{path}: {cause}")]
    Io {
        /// As in the settings.
        path: String,
        /// What the operating system says.
        cause: std::io::Error,
    },
    /// Others than the user of the server can change the file, and make themselves anybody.
    #[error("{path}: others can change it; run: chmod go-w {path}")]
    Writable {
        /// As in the settings.
        path: String,
    },
    /// The document cannot be downloaded.
    #[error("{url}: {cause}")]
    Fetch {
        /// Where it should be, without the query, which may hold a key.
        url: String,
        /// What the dialer says.
        cause: DialError,
    },
    /// The issuer answers with something else than a document.
    #[error("{url}: the answer is HTTP {status}")]
    Status {
        /// Where it should be.
        url: String,
        /// The status of the answer.
        status: u16,
    },
    /// The document has no usable keys.
    #[error("{from}: {cause}")]
    Unusable {
        /// The file or URL.
        from: String,
        /// What is wrong with it.
        cause: KeySetError,
    },
}

/// A key set and its number; every set that differs from the one before has the next one.
#[derive(Debug)]
pub(crate) struct LoadedKeys {
    pub(crate) set: KeySet,
    pub(crate) generation: u64,
    document: [u8; 32],
}

/// The keys in force.
pub(crate) struct KeySource {
    location: KeyLocation,
    dialer: Dialer,
    current: ArcSwapOption<LoadedKeys>,
    /// When keys were last asked for. Held while they are: others wait and take what comes.
    asked: Arc<Mutex<Option<Instant>>>,
}

impl KeySource {
    pub(crate) fn new(location: KeyLocation, dialer: Dialer) -> Self {
        Self {
            location,
            dialer,
            current: ArcSwapOption::empty(),
            asked: Arc::default(),
        }
    }

    pub(crate) fn location(&self) -> &KeyLocation {
        &self.location
    }

    /// The keys that were loaded last; `None` while there never were any.
    pub(crate) fn current(&self) -> Option<Arc<LoadedKeys>> {
        self.current.load_full()
    }

    /// Loads the keys. True if they have changed; after an error the last ones stay.
    pub(crate) async fn load(&self) -> Result<bool, KeySourceError> {
        let mut asked = self.asked.lock().await;
        *asked = Some(Instant::now());
        self.replace().await
    }

    /// Loads the keys for a token whose key is unknown, unless that was done a moment ago, and gives
    /// `record` what came of it. A caller that goes away does not end the load: whoever sends tokens
    /// and hangs up could keep the keys from being found, as there is one such load in ten seconds.
    pub(crate) async fn look_for_new(
        self: &Arc<Self>,
        record: impl FnOnce(Result<bool, KeySourceError>) + Send + 'static,
    ) {
        let mut asked = self.asked.clone().lock_owned().await;
        if asked.is_some_and(|at| at.elapsed() < LOOKUP_INTERVAL) {
            return;
        }
        *asked = Some(Instant::now());
        let source = self.clone();
        let load = tokio::spawn(async move {
            record(source.replace().await);
            drop(asked);
        });
        // It has no other end than its own.
        let _ = load.await;
    }

    async fn replace(&self) -> Result<bool, KeySourceError> {
        let (from, text) = match &self.location {
            KeyLocation::File(path) => (path.display().to_string(), read(path)?),
            KeyLocation::Url(url) => (shown(url), self.fetch(url).await?),
        };
        let document = Sha256::digest(&text).into();
        let current = self.current();
        if current
            .as_ref()
            .is_some_and(|keys| keys.document == document)
        {
            return Ok(false);
        }
        let set = KeySet::parse(&text).map_err(|cause| KeySourceError::Unusable { from, cause })?;
        let generation = current.map_or(1, |keys| keys.generation + 1);
        self.current.store(Some(Arc::new(LoadedKeys {
            set,
            generation,
            document,
        })));
        Ok(true)
    }

    async fn fetch(&self, url: &Url) -> Result<Vec<u8>, KeySourceError> {
        let request = HttpRequest {
            timeout: FETCH_TIMEOUT,
            connect: FETCH_TIMEOUT,
            max_bytes: KEY_SET_BYTES_MAX,
            // The keys are at the URL that the operator wrote, not where that leads to.
            redirects_max: None,
            ..HttpRequest::new(HttpMethod::Get, url.clone())
        };
        let fault = |cause| KeySourceError::Fetch {
            url: shown(url),
            cause,
        };
        let response = self.dialer.send(request).await.map_err(fault)?;
        if response.status != 200 {
            return Err(KeySourceError::Status {
                url: shown(url),
                status: response.status,
            });
        }
        Ok(response.body.to_vec())
    }
}

/// A URL as it may stand in a log: the query and a password may be secrets.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Neither can fail for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

fn read(path: &Path) -> Result<Vec<u8>, KeySourceError> {
    let shown = || path.display().to_string();
    let io = |cause| KeySourceError::Io {
        path: shown(),
        cause,
    };
    let file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.mode() & 0o022 != 0 {
        return Err(KeySourceError::Writable { path: shown() });
    }
    let mut text = Vec::new();
    let mut limited = file.take(KEY_SET_BYTES_MAX as u64 + 1);
    limited.read_to_end(&mut text).map_err(io)?;
    if text.len() > KEY_SET_BYTES_MAX {
        let cause = KeySetError::Malformed(format!("above {KEY_SET_BYTES_MAX} bytes"));
        return Err(KeySourceError::Unusable {
            from: shown(),
            cause,
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use turnwire_dial::DialerOptions;

    fn source(location: KeyLocation) -> KeySource {
        let dialer = Dialer::new(DialerOptions::default()).expect("a dialer");
        KeySource::new(location, dialer)
    }

    // G6
    #[tokio::test]
    async fn errors_do_not_show_the_query_of_the_url() {
        let url = "http://ann:planted@127.0.0.1:1/keys?code=planted";
        let url = url.parse().expect("a URL");
        let refused = source(KeyLocation::Url(url)).load().await;
        let text = refused.expect_err("nobody is there").to_string();
        assert!(text.starts_with("http://127.0.0.1:1/keys: "), "{text}");
        assert!(!text.contains("planted"), "{text}");
    }

    #[tokio::test]
    async fn file_that_others_can_change_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.json");
        fs::write(&path, "{\"keys\": []}").expect("written");
        let load = async |mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(&path, mode).expect("a mode");
            source(KeyLocation::File(path.clone())).load().await
        };
        for mode in [0o664, 0o646] {
            let refused = load(mode).await;
            assert!(
                matches!(refused, Err(KeySourceError::Writable { .. })),
                "{refused:?}"
            );
        }
        let readable = load(0o644).await;
        assert!(
            matches!(readable, Err(KeySourceError::Unusable { .. })),
            "it was read: {readable:?}"
        );
    }
}
