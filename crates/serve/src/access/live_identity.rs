//! The identity of an open connection: it ends when its lease does, and the connection with it. A
//! client can renew it.
//!
//! One sweep looks at all connections, instead of a timer for each.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use turnwire_event::{Owner, Principal, metric};
use turnwire_identity::{Authenticator, Caller, Lease, LeaseState, Refusal, Scope};
use turnwire_wire::session::RenewErrorCode;

/// How often connections are looked at: so late a connection is closed after its identity expired.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The identity of one connection.
#[derive(Debug)]
pub(crate) struct LiveIdentity {
    owner: Owner,
    /// The service that has opened the connection in the name of the owner.
    service: Option<Principal>,
    lease: Mutex<Lease>,
    /// A [`LeaseState`] as a number: read at every check of the connection.
    state: AtomicU8,
    /// Of the task of the connection.
    waker: Arc<AtomicWaker>,
}

impl LiveIdentity {
    /// Whether the identity still holds. One atomic read.
    pub(crate) fn state(&self) -> LeaseState {
        match self.state.load(Ordering::Acquire) {
            0 => LeaseState::Valid,
            1 => LeaseState::Expired,
            _ => LeaseState::Revoked,
        }
    }

    /// Looks whether the lease still holds, and wakes the connection if it does not.
    fn check(&self, authenticator: &Authenticator) {
        // Under the lock, so that a lease that is being renewed is not ended by the old one.
        let lease = self.lease.lock();
        let state = match authenticator.state_of(&lease) {
            LeaseState::Valid => return,
            LeaseState::Expired => 1,
            LeaseState::Revoked => 2,
        };
        self.state.store(state, Ordering::Release);
        drop(lease);
        self.waker.wake();
    }

    /// The caller with a new credential, if it may continue the connection: only the principal that
    /// opened it may. A service needs the right to act for the owner still. The owner's own credential
    /// does not continue what a service has opened: the connection would outlive the service's.
    fn continued_by(&self, caller: Caller) -> Result<Caller, RenewErrorCode> {
        let caller = match &self.service {
            Some(service) if *service == caller.owner.principal => {
                if !caller.scopes.has(Scope::ActAs) {
                    return Err(RenewErrorCode::Unauthorized);
                }
                caller.acting_for(self.owner.principal.clone())
            }
            Some(_) => return Err(RenewErrorCode::OtherPrincipal),
            None => caller,
        };
        if caller.owner != self.owner {
            return Err(RenewErrorCode::OtherPrincipal);
        }
        if !caller.scopes.has(Scope::Own) {
            return Err(RenewErrorCode::Unauthorized);
        }
        Ok(caller)
    }

    fn renew(&self, lease: Lease) {
        *self.lease.lock() = lease;
    }
}

/// The identities of all open connections.
pub struct LiveIdentities {
    authenticator: Arc<Authenticator>,
    open: Mutex<Vec<Weak<LiveIdentity>>>,
}

impl LiveIdentities {
    /// Identities that `authenticator` judges.
    pub fn new(authenticator: Arc<Authenticator>) -> Self {
        Self {
            authenticator,
            open: Mutex::default(),
        }
    }

    /// Who decides whether an identity holds.
    pub(crate) fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// The identity of a connection that `caller` opens; its task is woken through `waker` when the
    /// identity ends. `None` if callers are believed: such an identity never ends.
    pub(crate) fn register(
        &self,
        caller: &Caller,
        waker: Arc<AtomicWaker>,
    ) -> Option<Arc<LiveIdentity>> {
        if self.authenticator.is_open() {
            return None;
        }
        let identity = Arc::new(LiveIdentity {
            owner: caller.owner.clone(),
            service: caller.service.clone(),
            lease: Mutex::new(caller.lease.clone()),
            state: AtomicU8::new(0),
            waker,
        });
        self.open.lock().push(Arc::downgrade(&identity));
        // What ended between the request and now is not left to the next sweep.
        identity.check(&self.authenticator);
        Some(identity)
    }

    /// Gives a connection the lease of `token`, which must be of the principal that opened it. Returns
    /// the lease.
    pub(crate) async fn renew(
        &self,
        identity: &LiveIdentity,
        token: &str,
    ) -> Result<Lease, RenewErrorCode> {
        let caller = self.authenticator.authenticate(Some(token)).await;
        let caller = caller.map_err(|refusal| {
            let name = refusal.name();
            metrics::counter!(metric::AUTH_REFUSED_TOTAL, "reason" => name).increment(1);
            match refusal {
                Refusal::Unavailable => RenewErrorCode::Unavailable,
                _ => RenewErrorCode::Unauthorized,
            }
        })?;
        let caller = identity.continued_by(caller)?;
        identity.renew(caller.lease.clone());
        Ok(caller.lease)
    }

    /// Ends the identities whose lease is over, every second and after each change of the
    /// credentials; never returns.
    pub(crate) async fn sweep(&self) {
        if self.authenticator.is_open() {
            return std::future::pending().await;
        }
        let mut changes = self.authenticator.changes();
        loop {
            let _ = tokio::time::timeout(SWEEP_EVERY, changes.changed()).await;
            self.check_all();
        }
    }

    fn check_all(&self) {
        let mut open = self.open.lock();
        open.retain(|identity| match identity.upgrade() {
            Some(identity) => {
                identity.check(&self.authenticator);
                true
            }
            None => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{Clock, TenantId, Timestamp};
    use turnwire_identity::{TokenFile, TokenGrant};

    struct FixedClock;

    impl Clock for FixedClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_000)
        }
    }

    fn grant(principal: &str, tenant: u128, scopes: &[Scope]) -> TokenGrant {
        TokenGrant {
            owner: Owner {
                tenant: TenantId(tenant),
                principal: principal.parse().expect("a principal"),
            },
            scopes: scopes.iter().copied().collect(),
            label: None,
            expires_at: None,
        }
    }

    #[tokio::test]
    async fn identity_ends_with_its_token_unless_it_is_renewed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TokenFile::new(folder.path().join("tokens.json"));
        let create = |principal| {
            let created = file.create(grant(principal, 1, &[Scope::Own]), FixedClock.now());
            let (token, record) = created.expect("a token");
            (token.reveal().to_owned(), record.id)
        };
        let ((first, first_id), (second, _), (other, _)) =
            (create("ann"), create("ann"), create("bob"));
        let authenticator = Authenticator::with_tokens(file.clone(), Arc::new(FixedClock));
        let authenticator = Arc::new(authenticator.expect("a file"));
        let open = LiveIdentities::new(authenticator.clone());
        let caller = authenticator
            .authenticate(Some(&first))
            .await
            .expect("a caller");
        let register = || open.register(&caller, Arc::default()).expect("not open");
        let (renewed, left) = (register(), register());

        let refused = open.renew(&renewed, &other).await;
        assert_eq!(refused, Err(RenewErrorCode::OtherPrincipal));
        let refused = open.renew(&renewed, "twt_x").await;
        assert_eq!(refused, Err(RenewErrorCode::Unauthorized));
        open.renew(&renewed, &second).await.expect("renewed");
        file.revoke(&first_id).expect("revoked");
        authenticator.reload().await.expect("read again");
        open.check_all();
        assert_eq!(renewed.state(), LeaseState::Valid);
        assert_eq!(left.state(), LeaseState::Revoked);
        // One that was opened with a token that ended meanwhile.
        assert_eq!(register().state(), LeaseState::Revoked);
        drop((renewed, left));
        open.check_all();
        assert_eq!(open.open.lock().len(), 0);
    }

    #[tokio::test]
    async fn connection_of_a_service_is_renewed_by_that_service_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TokenFile::new(folder.path().join("tokens.json"));
        let create = |principal, tenant, scopes: &[Scope]| {
            let created = file.create(grant(principal, tenant, scopes), FixedClock.now());
            created.expect("a token").0.reveal().to_owned()
        };
        let service = &[Scope::Own, Scope::ActAs];
        let [first, second, demoted, helpless, elsewhere, other, anns] = [
            create("cron", 1, service),
            create("cron", 1, service),
            create("cron", 1, &[Scope::Own]),
            create("cron", 1, &[Scope::ActAs]),
            create("cron", 2, service),
            create("bot", 1, service),
            create("ann", 1, service),
        ];
        let authenticator = Authenticator::with_tokens(file.clone(), Arc::new(FixedClock));
        let authenticator = Arc::new(authenticator.expect("a file"));
        let open = LiveIdentities::new(authenticator.clone());
        let caller = authenticator.authenticate(Some(&first)).await;
        let caller = caller.expect("a caller");
        let acting = caller
            .clone()
            .acting_for("ann".parse().expect("a principal"));
        assert_eq!(acting.credential_principal().as_str(), "cron");
        let acting = open.register(&acting, Arc::default()).expect("not open");
        let plain = open.register(&caller, Arc::default()).expect("not open");

        for (token, of_acting, of_plain) in [
            (&second, None, None),
            (&demoted, Some(RenewErrorCode::Unauthorized), None),
            (
                &helpless,
                Some(RenewErrorCode::Unauthorized),
                Some(RenewErrorCode::Unauthorized),
            ),
            (
                &elsewhere,
                Some(RenewErrorCode::OtherPrincipal),
                Some(RenewErrorCode::OtherPrincipal),
            ),
            (
                &other,
                Some(RenewErrorCode::OtherPrincipal),
                Some(RenewErrorCode::OtherPrincipal),
            ),
            (
                &anns,
                Some(RenewErrorCode::OtherPrincipal),
                Some(RenewErrorCode::OtherPrincipal),
            ),
        ] {
            assert_eq!(open.renew(&acting, token).await.err(), of_acting);
            assert_eq!(open.renew(&plain, token).await.err(), of_plain);
        }
    }
}
