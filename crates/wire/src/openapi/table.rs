//! All operations of the API, one file per topic.

mod session;
mod approval;
mod turn;
mod chat;
mod record;
mod service;
mod admin;

use super::operation::OperationSpec;
use crate::problem::Code;

/// A group of operations in the document.
pub(super) struct OperationTag {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) operations: Vec<OperationSpec>,
}

/// The groups with every operation of the API, in the order of the document.
pub(super) fn tags() -> [OperationTag; 7] {
    [
        session::tag(),
        turn::tag(),
        chat::tag(),
        record::tag(),
        admin::tag(),
        service::problems(),
        service::operations(),
    ]
}

/// The failures of reading a session.
const SESSION_READ: &[Code] = &[
    Code::SessionNotFound,
    Code::TooManyRequests,
    Code::SessionQuarantined,
    Code::DatabaseDamaged,
];

/// The failures of reading a turn.
const TURN_READ: &[Code] = &[
    Code::TurnNotFound,
    Code::TooManyRequests,
    Code::SessionQuarantined,
    Code::DatabaseDamaged,
];

/// What a cancel fails with besides the failures of a read.
const CANCEL: &[Code] = &[Code::StorageFull];

/// The failures of a submit.
const SUBMIT: &[Code] = &[
    Code::SessionNotFound,
    Code::TurnInFlight,
    Code::UnsupportedContent,
    Code::IdempotencyMismatch,
    Code::QueueFull,
    Code::TooManyRequests,
    Code::QuotaExceeded,
    Code::Draining,
    Code::SessionQuarantined,
    Code::DatabaseDamaged,
    Code::FolderLost,
    Code::StorageFull,
];
