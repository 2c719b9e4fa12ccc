//! File descriptors: the process takes as many as the system allows, and the caps that need them are
//! lowered to what it got. So a connection is refused with an answer, never left hanging without a
//! descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::ServerConfig;

/// Descriptors for the database, the log, the listener, connections that are being refused, and
/// the runtime.
const OWN: u64 = 192;
/// Descriptors of one program: three pipes and one of its guard.
const PER_PROGRAM: u64 = 4;
/// Descriptors of one running turn: the connection to its model, and one of a tool.
const PER_TURN: u64 = 2;
/// The smallest caps: with less the server is of no use, and the operator is told.
const CAP_MIN: usize = 8;

/// Raises the soft limit of descriptors to the hard one, and lowers the caps of connections and
/// running turns in `config` if they need more.
pub fn fit(config: &mut ServerConfig) {
    let limit = raise();
    let (connections, turns) = (config.http.connections_max, config.turn.running_max);
    let fitting = caps(limit, config.tool.programs_max, connections, turns);
    if fitting == (connections, turns) {
        return;
    }
    (config.http.connections_max, config.turn.running_max) = fitting;
    tracing::warn!(
        limit,
        "the limit of open files is low: http.connections_max is {} instead of {connections}, \
         turn.running_max {} instead of {turns}; raise it with `ulimit -Hn` or LimitNOFILE=",
        fitting.0,
        fitting.1,
    );
}

/// Raises the soft limit; returns the limit in force.
fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The caps of connections and running turns within `limit` descriptors. Turns get a quarter of what
/// the programs leave, if they need that much.
fn caps(limit: u64, programs: usize, connections: usize, turns: usize) -> (usize, usize) {
    let for_programs = (programs as u64 * PER_PROGRAM).min(limit / 4);
    let shared = limit.saturating_sub(OWN.min(limit / 4) + for_programs);
    let for_turns = (turns as u64 * PER_TURN).min(shared / 4);
    let within = |cap: usize, room: u64| cap.min(CAP_MIN.max(usize::try_from(room).unwrap_or(cap)));
    (
        within(connections, shared - for_turns),
        within(turns, for_turns / PER_TURN),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_stay_as_configured_with_enough_descriptors() {
        assert_eq!(caps(20_000, 64, 10_000, 1_024), (10_000, 1_024));
        assert_eq!(caps(u64::MAX, 64, 10_000, 1_024), (10_000, 1_024));
    }

    #[test]
    fn caps_are_lowered_to_the_descriptors() {
        for limit in [256, 512, 1_024, 4_096, 10_000] {
            let (connections, turns) = caps(limit, 64, 10_000, 1_024);
            assert!(connections >= CAP_MIN && turns >= CAP_MIN);
            let needed = connections as u64 + turns as u64 * PER_TURN;
            assert!(needed < limit, "{limit}: {connections} and {turns}");
        }
        assert_eq!(caps(1_024, 64, 10_000, 1_024), (432, 72));
    }
}
