//! The history checker. Input: everything clients requested and received, the injected faults and
//! the server's final log and rows ([`History`]). Output: the broken promises ([`Violation`]). It
//! knows the wire contracts only and shares no code with the server: it folds events itself.

mod record;
mod chat_violation;
mod violation;
mod parse;
mod worker_streams;
mod chain;
mod turns;
mod accepted;
mod delivery;
mod rows;
mod snapshot;
mod streamed_message;
mod text;
mod chat;
mod dump;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fixture_rows;
#[cfg(test)]
mod fixture_clients;
#[cfg(test)]
mod fixture_viewers;
#[cfg(test)]
mod tests;

pub use chat_violation::ChatViolation as ChatBroken;
pub use record::{
    ChatEnd, ChatRecord, ChatRequest, ConnectionEntry, ConnectionRecord, FaultKind, History,
    InjectedFault, LoggedEvent, ReceivedFrame, RequestRecord, SessionLog, SubscribeRecord,
};
pub use violation::Violation;

/// How many violations a failed assertion prints; later ones usually follow from the first.
const PRINTED_MAX: usize = 20;

impl History {
    /// Checks the history and returns every broken promise, in no particular order.
    pub fn violations(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let logs = parse::logs(self, &mut violations);
        let clients = parse::clients(self, &mut violations);
        let clients = worker_streams::split_workers(clients, &logs, &mut violations);
        accepted::check(self, &logs, &mut violations);
        chat::check(self, &logs, &mut violations);
        for log in logs.values() {
            chain::check(log, &mut violations);
            rows::check(log, &mut violations);
            let ends = turns::check(log, &mut violations);
            for client in clients.iter().filter(|client| client.session == log.id) {
                delivery::check(log, client, &mut violations);
                turns::check_transient(log, &ends, client, &mut violations);
                text::check(self, log, client, &mut violations);
                snapshot::check(self, log, client, &mut violations);
            }
        }
        violations
    }

    /// Panics with the violations if there are any, and writes the history to a folder.
    pub fn assert_clean(&self) {
        let violations = self.violations();
        if violations.is_empty() {
            return;
        }
        let lines = violations
            .iter()
            .take(PRINTED_MAX)
            .map(|violation| format!("\n- {violation}"));
        panic!(
            "{} violations in {} connections, {} chats, {} sessions, {} kills ({}):{}",
            violations.len(),
            self.connections.len(),
            self.chats.len(),
            self.sessions.len(),
            self.count(FaultKind::Kill),
            dump::write(self),
            lines.collect::<String>(),
        );
    }
}
