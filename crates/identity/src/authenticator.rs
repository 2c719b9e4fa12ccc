//! The [`Authenticator`]: from the bearer token of a request to its [`Caller`].

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use turnwire_dial::Dialer;
use turnwire_event::{Clock, Timestamp, metric};

use crate::caller::{Caller, Credential, Lease, LeaseState};
use crate::jwt::{JwtFault, JwtRules};
use crate::key_source::{KeyLocation, KeySource, KeySourceError};
use crate::refusal::Refusal;
use crate::token::TokenHash;
use crate::token_file::{
    FileStamp, TokenFile, TokenFileError, TokenRecord, TokenTable, file_stamp,
};
use crate::verified::VerifiedTokens;

/// Verified JSON Web Tokens that are kept: about 4 MB.
const VERIFIED_MAX: usize = 20_000;

/// Why credentials cannot be loaded. For operators.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file of API tokens.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The keys of the issuer.
    #[error(transparent)]
    Keys(#[from] KeySourceError),
}

/// Decides who sends a request.
pub struct Authenticator {
    mode: Mode,
    clock: Arc<dyn Clock>,
    /// Changes when credentials were added or removed.
    changes: watch::Sender<()>,
}

enum Mode {
    /// Every caller is believed.
    Open,
    Tokens(TokenMode),
    Jwt(Box<JwtMode>),
}

struct TokenMode {
    file: TokenFile,
    known: ArcSwap<KnownTokens>,
    /// The state of the file that was read last.
    stamp: Mutex<FileStamp>,
}

#[derive(Default)]
struct KnownTokens {
    table: HashMap<TokenHash, Arc<TokenRecord>>,
    by_id: HashMap<String, Arc<TokenRecord>>,
}

struct JwtMode {
    rules: JwtRules,
    keys: Arc<KeySource>,
    verified: VerifiedTokens,
}

impl KnownTokens {
    fn of(table: TokenTable) -> Self {
        let mut known = Self::default();
        for (hash, record) in table {
            let record = Arc::new(record);
            known.by_id.insert(record.id.clone(), record.clone());
            known.table.insert(hash, record);
        }
        known
    }

    /// The state of a token that was accepted as `then`. One whose entry now gives another owner or
    /// other scopes is revoked, as what it was used for may no longer be allowed.
    fn state_of(&self, then: &TokenRecord, now: Timestamp) -> LeaseState {
        match self.by_id.get(&then.id) {
            Some(entry) if entry.owner == then.owner && entry.scopes == then.scopes => {
                match entry.has_expired(now) {
                    true => LeaseState::Expired,
                    false => LeaseState::Valid,
                }
            }
            Some(_) | None => LeaseState::Revoked,
        }
    }
}

impl Authenticator {
    fn new(mode: Mode, clock: Arc<dyn Clock>) -> Self {
        let (changes, _) = watch::channel(());
        Self {
            mode,
            clock,
            changes,
        }
    }

    /// One that needs no token. Who the caller is, the caller says.
    pub fn open(clock: Arc<dyn Clock>) -> Self {
        Self::new(Mode::Open, clock)
    }

    /// One that accepts the tokens of `file`.
    pub fn with_tokens(file: TokenFile, clock: Arc<dyn Clock>) -> Result<Self, LoadError> {
        // Before the file is read: a change in between is seen at the next look.
        let stamp = Mutex::new(file_stamp(file.path()));
        let known = ArcSwap::from_pointee(KnownTokens::of(file.read()?));
        let mode = TokenMode { file, known, stamp };
        Ok(Self::new(Mode::Tokens(mode), clock))
    }

    /// One that accepts tokens of an issuer whose keys are at `location`. A file must be there now;
    /// a document that cannot be downloaded yet is asked for again.
    pub async fn with_issuer(
        rules: JwtRules,
        location: KeyLocation,
        dialer: Dialer,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LoadError> {
        let keys = Arc::new(KeySource::new(location, dialer));
        if let Err(error) = keys.load().await {
            if matches!(keys.location(), KeyLocation::File(_)) {
                return Err(error.into());
            }
            tracing::error!(%error, "the keys of auth.jwt_jwks cannot be had; no token is accepted yet");
        }
        let mode = JwtMode {
            rules,
            keys,
            verified: VerifiedTokens::new(VERIFIED_MAX),
        };
        Ok(Self::new(Mode::Jwt(Box::new(mode)), clock))
    }

    /// True if every caller is believed.
    pub fn is_open(&self) -> bool {
        matches!(self.mode, Mode::Open)
    }

    /// True if tokens can be checked.
    pub fn is_ready(&self) -> bool {
        match &self.mode {
            Mode::Open | Mode::Tokens(_) => true,
            Mode::Jwt(mode) => mode.keys.current().is_some(),
        }
    }

    /// The caller that sends `token`. With [`Authenticator::open`] there is none to find.
    pub async fn authenticate(&self, token: Option<&str>) -> Result<Caller, Refusal> {
        let token = token.ok_or(Refusal::Missing)?;
        match &self.mode {
            Mode::Open => Err(Refusal::Invalid),
            Mode::Tokens(mode) => self.find_token(mode, token),
            Mode::Jwt(mode) => self.check_jwt(mode, token).await,
        }
    }

    fn find_token(&self, mode: &TokenMode, token: &str) -> Result<Caller, Refusal> {
        let known = mode.known.load();
        let record = known.table.get(&TokenHash::of(token));
        let record = record.ok_or(Refusal::Invalid)?;
        if record.has_expired(self.clock.now()) {
            return Err(Refusal::Expired);
        }
        Ok(Caller {
            owner: record.owner.clone(),
            service: None,
            scopes: record.scopes,
            lease: Lease {
                credential: Credential::Token(record.clone()),
                expires_at: record.expires_at,
            },
        })
    }

    async fn check_jwt(&self, mode: &JwtMode, token: &str) -> Result<Caller, Refusal> {
        let hash = TokenHash::of(token);
        let mut is_new_set = false;
        loop {
            let now = self.clock.now();
            let keys = mode.keys.current();
            if let Some(keys) = &keys {
                if let Some(caller) = mode.verified.get(&hash, keys.generation, now) {
                    return Ok(caller);
                }
                match mode.rules.check(token, &keys.set, now) {
                    Ok(caller) => {
                        mode.verified.insert(hash, caller.clone(), keys.generation);
                        return Ok(caller);
                    }
                    Err(JwtFault::Refused(refusal)) => return Err(refusal),
                    Err(JwtFault::UnknownKey) => {}
                }
            }
            let fault = if keys.is_some() {
                Refusal::Invalid
            } else {
                Refusal::Unavailable
            };
            let generation = keys.map(|keys| keys.generation);
            if is_new_set {
                return Err(fault);
            }
            is_new_set = true;
            let changes = self.changes.clone();
            // Without new keys the token stays unknown.
            let record = move |found: Result<bool, KeySourceError>| {
                let _ = record(&changes, found.map_err(LoadError::from));
            };
            mode.keys.look_for_new(record).await;
            let newer = mode.keys.current().map(|keys| keys.generation);
            if newer == generation {
                return Err(fault);
            }
        }
    }

    /// Whether what a caller proved its identity with is still accepted.
    pub fn state_of(&self, lease: &Lease) -> LeaseState {
        let now = self.clock.now();
        if let (Mode::Tokens(mode), Credential::Token(then)) = (&self.mode, &lease.credential) {
            // By its entry of now, which may have another end.
            return mode.known.load().state_of(then, now);
        }
        if lease.has_expired(now) {
            return LeaseState::Expired;
        }
        let is_accepted = match (&self.mode, &lease.credential) {
            (Mode::Open, Credential::None) => true,
            (Mode::Jwt(mode), Credential::Jwt(key)) => {
                let keys = mode.keys.current();
                keys.is_some_and(|keys| keys.set.contains(key))
            }
            _ => false,
        };
        if is_accepted {
            LeaseState::Valid
        } else {
            LeaseState::Revoked
        }
    }

    /// Follows the changes of what is accepted.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Loads the credentials again if they may have changed: the file of tokens if it is another,
    /// the keys of an issuer in any case. After an error the last ones stay in force.
    pub async fn reload(&self) -> Result<bool, LoadError> {
        let loaded = match &self.mode {
            Mode::Open => return Ok(false),
            Mode::Tokens(mode) => mode.reload().map_err(LoadError::from),
            Mode::Jwt(mode) => mode.keys.load().await.map_err(LoadError::from),
        };
        record(&self.changes, loaded)
    }
}

/// Logs and counts what came of a load, and announces a change.
fn record(changes: &watch::Sender<()>, loaded: Result<bool, LoadError>) -> Result<bool, LoadError> {
    let result = match &loaded {
        Ok(false) => return loaded,
        Ok(true) => {
            tracing::info!("credentials have changed");
            changes.send_replace(());
            "changed"
        }
        Err(error) => {
            tracing::error!(%error, "credentials cannot be loaded again; the last ones stay");
            "failed"
        }
    };
    metrics::counter!(metric::AUTH_RELOADS_TOTAL, "result" => result).increment(1);
    loaded
}

impl TokenMode {
    fn reload(&self) -> Result<bool, TokenFileError> {
        let mut last = self.stamp.lock();
        let stamp = file_stamp(self.file.path());
        if *last == stamp {
            return Ok(false);
        }
        // Noted first: a file that cannot be used is reported once, and not at every look.
        *last = stamp;
        let table = self.file.read()?;
        self.known.store(Arc::new(KnownTokens::of(table)));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::scope::{Scope, ScopeSet};
    use crate::token_file::TokenGrant;
    use turnwire_event::{Owner, TenantId};

    #[derive(Default)]
    struct HandClock(AtomicI64);

    impl Clock for HandClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    fn grant(expires_at: Option<i64>) -> TokenGrant {
        TokenGrant {
            owner: Owner {
                tenant: TenantId(7),
                principal: "ann".parse().expect("a principal"),
            },
            scopes: ScopeSet::NONE.with(Scope::Own),
            label: None,
            expires_at: expires_at.map(Timestamp::from_millis),
        }
    }

    struct Bench {
        _folder: tempfile::TempDir,
        file: TokenFile,
        clock: Arc<HandClock>,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let file = TokenFile::new(folder.path().join("tokens.json"));
            Self {
                _folder: folder,
                file,
                clock: Arc::default(),
            }
        }

        fn token(&self, expires_at: Option<i64>) -> (String, String) {
            let now = Timestamp::from_millis(0);
            let created = self.file.create(grant(expires_at), now);
            let (token, record) = created.expect("a token");
            (token.reveal().to_owned(), record.id)
        }

        fn authenticator(&self) -> Authenticator {
            let authenticator = Authenticator::with_tokens(self.file.clone(), self.clock.clone());
            authenticator.expect("a file")
        }
    }

    // D-71
    #[tokio::test]
    async fn token_is_accepted_until_it_is_revoked() {
        let bench = Bench::new();
        let (token, id) = bench.token(None);
        let authenticator = bench.authenticator();
        let mut changes = authenticator.changes();
        let caller = authenticator
            .authenticate(Some(&token))
            .await
            .expect("accepted");
        assert_eq!(caller.owner, grant(None).owner);
        assert_eq!(authenticator.state_of(&caller.lease), LeaseState::Valid);
        assert!(!authenticator.reload().await.expect("nothing new"));
        assert!(!changes.has_changed().expect("open"));

        bench.file.revoke(&id).expect("revoked");
        assert_eq!(authenticator.state_of(&caller.lease), LeaseState::Valid);
        assert!(authenticator.reload().await.expect("read again"));
        assert!(changes.has_changed().expect("open"));
        changes.mark_unchanged();
        assert_eq!(authenticator.state_of(&caller.lease), LeaseState::Revoked);
        let refused = authenticator.authenticate(Some(&token)).await;
        assert_eq!(refused, Err(Refusal::Invalid));
    }

    #[tokio::test]
    async fn expired_token_is_refused() {
        let bench = Bench::new();
        let (token, _) = bench.token(Some(1_000));
        let authenticator = bench.authenticator();
        bench.clock.0.store(999, Ordering::Relaxed);
        let caller = authenticator
            .authenticate(Some(&token))
            .await
            .expect("accepted");
        bench.clock.0.store(1_000, Ordering::Relaxed);
        assert_eq!(authenticator.state_of(&caller.lease), LeaseState::Expired);
        let refused = authenticator.authenticate(Some(&token)).await;
        assert_eq!(refused, Err(Refusal::Expired));
    }

    // D-71
    #[tokio::test]
    async fn token_whose_entry_was_changed_loses_its_lease() {
        let file_with = |change: &dyn Fn(&mut serde_json::Value)| {
            let bench = Bench::new();
            let (token, _) = bench.token(Some(9_000));
            let authenticator = bench.authenticator();
            let text = std::fs::read_to_string(bench.file.path()).expect("text");
            let mut stored: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            change(&mut stored["tokens"][0]);
            (bench, token, authenticator, stored.to_string())
        };
        type Change = fn(&mut serde_json::Value);
        let changes: [(Change, LeaseState); 6] = [
            (|token| token["label"] = "new".into(), LeaseState::Valid),
            (
                |token| token["expires_at"] = "1970-01-01T00:00:20Z".into(),
                LeaseState::Valid,
            ),
            (
                |token| token["expires_at"] = "1970-01-01T00:00:05Z".into(),
                LeaseState::Expired,
            ),
            (
                |token| token["scopes"] = serde_json::json!(["metrics"]),
                LeaseState::Revoked,
            ),
            (
                |token| token["principal"] = "bob".into(),
                LeaseState::Revoked,
            ),
            (
                |token| token["tenant"] = "00000000-0000-0000-0000-000000000008".into(),
                LeaseState::Revoked,
            ),
        ];
        for (index, (change, expected)) in changes.into_iter().enumerate() {
            let (bench, token, authenticator, text) = file_with(&change);
            let caller = authenticator.authenticate(Some(&token)).await;
            let caller = caller.expect("accepted");
            std::fs::write(bench.file.path(), text).expect("written");
            assert!(authenticator.reload().await.expect("read again"));
            bench.clock.0.store(6_000, Ordering::Relaxed);
            let state = authenticator.state_of(&caller.lease);
            assert_eq!(state, expected, "change {index}");
        }
    }

    #[tokio::test]
    async fn damaged_file_leaves_the_last_tokens_in_force() {
        let bench = Bench::new();
        let (token, _) = bench.token(None);
        let authenticator = bench.authenticator();
        std::fs::write(bench.file.path(), "{\"tokens\": [").expect("written");
        assert!(authenticator.reload().await.is_err());
        assert!(authenticator.authenticate(Some(&token)).await.is_ok());
        // Reported once.
        assert!(!authenticator.reload().await.expect("the same file"));
        std::fs::remove_file(bench.file.path()).expect("removed");
        assert!(authenticator.reload().await.expect("no file"));
        assert!(authenticator.authenticate(Some(&token)).await.is_err());
    }

    #[tokio::test]
    async fn missing_and_foreign_tokens_are_refused() {
        let bench = Bench::new();
        let (token, _) = bench.token(None);
        let authenticator = bench.authenticator();
        assert_eq!(
            authenticator.authenticate(None).await,
            Err(Refusal::Missing)
        );
        for wrong in [
            "",
            "twt_",
            &token[..29],
            &format!("{token} "),
            &token.to_lowercase(),
        ] {
            let refused = authenticator.authenticate(Some(wrong)).await;
            assert_eq!(refused, Err(Refusal::Invalid), "{wrong}");
        }
        let open = Authenticator::open(bench.clock.clone());
        assert_eq!(open.state_of(&Lease::UNLIMITED), LeaseState::Valid);
        assert_eq!(
            authenticator.state_of(&Lease::UNLIMITED),
            LeaseState::Revoked
        );
    }
}
