//! The history checker: what clients asked and got, the faults that were made and the final log
//! go in; a list of broken promises comes out. It knows the contract and nothing of the server:
//! it folds events with code of its own.

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

/// How many violations a failed assertion prints; the first ones explain the rest.
const PRINTED_MAX: usize = 20;

impl History {
    /// Every broken promise in it.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let logs = parse::logs(self, &mut found);
        let clients = parse::clients(self, &mut found);
        let clients = worker_streams::apart(clients, &logs, &mut found);
        accepted::check(self, &logs, &mut found);
        chat::check(self, &logs, &mut found);
        for log in logs.values() {
            chain::check(log, &mut found);
            rows::check(log, &mut found);
            let ends = turns::check(log, &mut found);
            for client in clients.iter().filter(|client| client.session == log.id) {
                delivery::check(log, client, &mut found);
                turns::check_transient(log, &ends, client, &mut found);
                text::check(self, log, client, &mut found);
                snapshot::check(self, log, client, &mut found);
            }
        }
        found
    }

    /// Panics with what is broken, if anything is.
    pub fn assert_clean(&self) {
        let found = self.violations();
        if found.is_empty() {
            return;
        }
        let lines = found
            .iter()
            .take(PRINTED_MAX)
            .map(|violation| format!("\n- {violation}"));
        panic!(
            "{} broken promises in {} connections, {} chats, {} sessions, {} kills ({}):{}",
            found.len(),
            self.connections.len(),
            self.chats.len(),
            self.sessions.len(),
            self.count(FaultKind::Kill),
            dump::write(self),
            lines.collect::<String>(),
        );
    }
}
