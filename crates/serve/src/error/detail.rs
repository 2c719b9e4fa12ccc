//! What clients are told about limits and quotas.

use turnwire_fair::FairRefusal;
use turnwire_session::{QuotaExceeded, QuotaKind, QuotaScope, SharedResource};

/// What a client is told about a limit that owners share.
pub(super) fn limit_detail(resource: SharedResource, refusal: FairRefusal) -> &'static str {
    use FairRefusal::{AllFull, OwnerFull};
    match (resource, refusal) {
        (SharedResource::RunningTurns, OwnerFull) => {
            "You have as many running turns as one principal may have; try again when one has ended."
        }
        (SharedResource::RunningTurns, AllFull) => {
            "The server runs as many turns as it may; try again when one has ended."
        }
        (SharedResource::QueuedTurns, OwnerFull) => {
            "You have as many queued turns as one principal may have; try again when one has started."
        }
        (SharedResource::QueuedTurns, AllFull) => {
            "The server has as many queued turns as it may; try again when one has started."
        }
        (SharedResource::RunningWorkers, _) => {
            "As many workers run as may; try again when one has ended."
        }
        (SharedResource::InputBytes, OwnerFull) => {
            "Your turns in flight have as many bytes of input as one principal may have; try again when \
             one has ended."
        }
        (SharedResource::InputBytes, AllFull) => {
            "The turns in flight have as many bytes of input as the server may hold; try again soon."
        }
        (SharedResource::OpenSessions, OwnerFull) => {
            "You have as many busy sessions as one principal may have; end turns or close connections."
        }
        (SharedResource::Jobs, _) => {
            "You have named as many jobs as one principal may; use one of them."
        }
        (SharedResource::OpenSessions, AllFull) => {
            "The server has as many busy sessions as it may; try again soon."
        }
    }
}

/// What a client is told about a quota that is used up.
pub(super) fn quota_detail(refused: &QuotaExceeded) -> &'static str {
    use QuotaScope::{Principal, Tenant};
    match (refused.kind, refused.scope) {
        (QuotaKind::Turns, Principal) => {
            "You have submitted as many turns in this minute as one principal may."
        }
        (QuotaKind::Turns, Tenant) => {
            "Your tenant has submitted as many turns in this minute as it may."
        }
        (QuotaKind::Subscribes, Principal) => {
            "You have asked for as many streams in this minute as one principal may."
        }
        (QuotaKind::Subscribes, Tenant) => {
            "Your tenant has asked for as many streams in this minute as it may."
        }
        (QuotaKind::ReplayBytes, Principal) => {
            "You have read as many stored events in this minute as one principal may."
        }
        (QuotaKind::ReplayBytes, Tenant) => {
            "Your tenant has read as many stored events in this minute as it may."
        }
        (QuotaKind::Tokens, Principal) => {
            "Your turns have used as many tokens today as those of one principal may."
        }
        (QuotaKind::Tokens, Tenant) => {
            "The turns of your tenant have used as many tokens today as they may."
        }
        (QuotaKind::Cost, Principal) => {
            "Your turns have cost as much today as those of one principal may."
        }
        (QuotaKind::Cost, Tenant) => {
            "The turns of your tenant have cost as much today as they may."
        }
    }
}
