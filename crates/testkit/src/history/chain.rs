//! Checks the log alone (I2 and the hash chain): numbers 1..n without a gap in one epoch, persisted
//! types only, and each hash computed from the one before it and the stored bytes.

use sha2::{Digest as _, Sha256};
use turnwire_event::{Epoch, Position, Seq};

use super::parse::ParsedLog;
use super::violation::Violation;

/// Checks one session's log.
pub(super) fn check(log: &ParsedLog<'_>, violations: &mut Vec<Violation>) {
    let epoch = log.events.first().map_or(Epoch::FIRST, |e| e.id.epoch);
    for (event, number) in log.events.iter().zip(1u64..) {
        let place = Position::persisted(epoch, Seq(number));
        let mine = event.session_id == log.id;
        if event.id != place || !event.body.kind().is_persisted() || !mine {
            violations.push(Violation::NotDense {
                session: log.id,
                expected: number,
                actual: event.id,
                kind: event.body.kind(),
            });
        }
    }
    let mut hash = Sha256::digest(log.id.to_string().as_bytes());
    for (event, logged) in log.events.iter().zip(&log.raw.events) {
        let mut next = Sha256::new();
        next.update(hash);
        next.update(logged.text.as_bytes());
        hash = next.finalize();
        let expected = hex(&hash);
        if logged.hash != expected {
            violations.push(Violation::ChainBroken {
                session: log.id,
                id: event.id,
                actual: logged.hash.clone(),
                expected,
            });
            // Every later hash differs too; report the first.
            return;
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            use std::fmt::Write as _;
            let _ = write!(text, "{byte:02x}");
            text
        })
}
