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
/// Descriptors of one running turn, also of a worker: the connection to its model, and one of a tool.
const PER_TURN: u64 = 2;
/// The smallest caps: with less the server is of no use, and the operator is told.
const CAP_MIN: usize = 8;

/// The caps that need descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DescriptorCaps {
    connections: usize,
    turns: usize,
    /// Running turns of workers, which have connections to models too.
    workers: usize,
}

/// Raises the soft limit of descriptors to the hard one, and lowers the caps of connections, running
/// turns and running workers in `config` if they need more. The shares of one owner are lowered in
/// the same proportion.
pub fn fit(config: &mut ServerConfig) {
    let limit = raise();
    let found = DescriptorCaps {
        connections: config.http.connections_max,
        turns: config.turn.running_max,
        workers: config.session.workers_running_max,
    };
    let fitting = caps(limit, config.tool.programs_max, found);
    if fitting == found {
        return;
    }
    let (http, turn, session) = (&mut config.http, &mut config.turn, &mut config.session);
    for (share, total, from, to) in [
        (
            &mut http.connections_max_per_owner,
            &mut http.connections_max,
            found.connections,
            fitting.connections,
        ),
        (
            &mut turn.running_max_per_owner,
            &mut turn.running_max,
            found.turns,
            fitting.turns,
        ),
        (
            &mut session.workers_running_max_per_owner,
            &mut session.workers_running_max,
            found.workers,
            fitting.workers,
        ),
    ] {
        *share = scaled(*share, from, to);
        *total = to;
    }
    tracing::warn!(
        limit,
        "the limit of open files is low: http.connections_max is {} instead of {}, \
         turn.running_max {} instead of {}, session.workers_running_max {} instead of {}, and the \
         shares of one principal in proportion; raise it with `ulimit -Hn` or LimitNOFILE=",
        fitting.connections,
        found.connections,
        fitting.turns,
        found.turns,
        fitting.workers,
        found.workers,
    );
}

/// The share of one owner in `to` that it was in `from`; at least one.
fn scaled(share: usize, from: usize, to: usize) -> usize {
    (share.min(from) * to / from.max(1)).max(1)
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

/// The caps within `limit` descriptors. Turns and workers together get a quarter of what the programs
/// leave, if they need that much.
fn caps(limit: u64, programs: usize, wanted: DescriptorCaps) -> DescriptorCaps {
    let for_programs = (programs as u64 * PER_PROGRAM).min(limit / 4);
    let shared = limit.saturating_sub(OWN.min(limit / 4) + for_programs);
    let all_turns = wanted.turns.saturating_add(wanted.workers);
    let for_turns = (all_turns as u64 * PER_TURN).min(shared / 4);
    let within = |cap: usize, room: u64| cap.min(CAP_MIN.max(usize::try_from(room).unwrap_or(cap)));
    let of_turns = |cap: usize| {
        let room = for_turns / PER_TURN * cap as u64 / (all_turns as u64).max(1);
        within(cap, room)
    };
    DescriptorCaps {
        connections: within(wanted.connections, shared - for_turns),
        turns: of_turns(wanted.turns),
        workers: of_turns(wanted.workers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: DescriptorCaps = DescriptorCaps {
        connections: 10_000,
        turns: 1_024,
        workers: 1_024,
    };

    #[test]
    fn caps_stay_as_configured_with_enough_descriptors() {
        assert_eq!(caps(20_000, 64, WANTED), WANTED);
        assert_eq!(caps(u64::MAX, 64, WANTED), WANTED);
    }

    #[test]
    fn caps_are_lowered_to_the_descriptors() {
        for limit in [256, 512, 1_024, 4_096, 10_000] {
            let caps = caps(limit, 64, WANTED);
            assert!(caps.connections >= CAP_MIN && caps.turns >= CAP_MIN);
            let turns = (caps.turns + caps.workers) as u64;
            let needed = caps.connections as u64 + turns * PER_TURN;
            assert!(needed < limit, "{limit}: {caps:?}");
        }
        let fitting = DescriptorCaps {
            connections: 432,
            turns: 36,
            workers: 36,
        };
        assert_eq!(caps(1_024, 64, WANTED), fitting);
    }

    #[test]
    fn owner_keeps_its_proportion() {
        assert_eq!(scaled(2_500, 10_000, 432), 108);
        assert_eq!(scaled(20_000, 10_000, 432), 432);
        assert_eq!(scaled(1, 10_000, 432), 1);
    }
}
