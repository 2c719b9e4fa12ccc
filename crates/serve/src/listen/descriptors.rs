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

/// Descriptors of one call to a data service: its connection.
const PER_SERVICE_CALL: u64 = 1;

/// The caps that need descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DescriptorCaps {
    connections: usize,
    turns: usize,
    /// Running turns of workers, which have connections to models too.
    workers: usize,
    programs: usize,
    service_calls: usize,
}

/// Raises the soft limit of descriptors to the hard one, and lowers the caps of connections, running
/// turns, running workers, programs and calls to data services in `config` if they need more. The
/// shares of one owner are lowered in the same proportion.
pub fn fit(config: &mut ServerConfig) {
    let limit = raise();
    let found = DescriptorCaps {
        connections: config.http.connections_max,
        turns: config.turn.running_max,
        workers: config.session.workers_running_max,
        programs: config.tool.programs_max,
        service_calls: config.tool.service_calls_max,
    };
    let fitting = caps(limit, found);
    if fitting == found {
        return;
    }
    let (http, turn, session) = (&mut config.http, &mut config.turn, &mut config.session);
    let tool = &mut config.tool;
    let mut lowered = Vec::new();
    for (name, share, total, to) in [
        (
            "http.connections_max",
            &mut http.connections_max_per_owner,
            &mut http.connections_max,
            fitting.connections,
        ),
        (
            "turn.running_max",
            &mut turn.running_max_per_owner,
            &mut turn.running_max,
            fitting.turns,
        ),
        (
            "session.workers_running_max",
            &mut session.workers_running_max_per_owner,
            &mut session.workers_running_max,
            fitting.workers,
        ),
        (
            "tool.programs_max",
            &mut tool.programs_per_owner_max,
            &mut tool.programs_max,
            fitting.programs,
        ),
        (
            "tool.service_calls_max",
            &mut tool.service_calls_per_owner_max,
            &mut tool.service_calls_max,
            fitting.service_calls,
        ),
    ] {
        if to < *total {
            lowered.push(format!("{name} is {to} instead of {total}"));
            *share = scaled(*share, *total, to);
            *total = to;
        }
    }
    let lowered = lowered.join(", ");
    tracing::warn!(
        limit,
        "the limit of open files is low: {lowered}, and the shares of one principal in proportion; \
         raise it with `ulimit -Hn` or LimitNOFILE="
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

/// The caps within `limit` descriptors. Programs get a quarter of all at most, calls to data services
/// an eighth, and turns and workers together a quarter of the rest. As many MCP servers as programs may
/// run beside them, so a program counts twice.
fn caps(limit: u64, wanted: DescriptorCaps) -> DescriptorCaps {
    let within = |cap: usize, room: u64| cap.min(CAP_MIN.max(usize::try_from(room).unwrap_or(cap)));
    let per_program = 2 * PER_PROGRAM;
    let programs = within(wanted.programs, limit / 4 / per_program);
    let service_calls = within(wanted.service_calls, limit / 8 / PER_SERVICE_CALL);
    let for_tools = programs as u64 * per_program + service_calls as u64 * PER_SERVICE_CALL;
    let shared = limit.saturating_sub(OWN.min(limit / 4) + for_tools);
    let all_turns = wanted.turns.saturating_add(wanted.workers);
    let for_turns = (all_turns as u64 * PER_TURN).min(shared / 4);
    let of_turns = |cap: usize| {
        let room = for_turns / PER_TURN * cap as u64 / (all_turns as u64).max(1);
        within(cap, room)
    };
    DescriptorCaps {
        connections: within(wanted.connections, shared - for_turns),
        turns: of_turns(wanted.turns),
        workers: of_turns(wanted.workers),
        programs,
        service_calls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: DescriptorCaps = DescriptorCaps {
        connections: 10_000,
        turns: 1_024,
        workers: 1_024,
        programs: 64,
        service_calls: 256,
    };

    #[test]
    fn caps_stay_as_configured_with_enough_descriptors() {
        assert_eq!(caps(20_000, WANTED), WANTED);
        assert_eq!(caps(u64::MAX, WANTED), WANTED);
    }

    #[test]
    fn caps_are_lowered_to_the_descriptors() {
        for limit in [256, 512, 1_024, 4_096, 10_000] {
            let caps = caps(limit, WANTED);
            let all = [caps.connections, caps.turns, caps.workers, caps.programs];
            assert!(all.iter().all(|cap| *cap >= CAP_MIN), "{limit}: {caps:?}");
            let turns = (caps.turns + caps.workers) as u64 * PER_TURN;
            let tools = caps.programs as u64 * 2 * PER_PROGRAM + caps.service_calls as u64;
            let needed = caps.connections as u64 + turns + tools;
            assert!(needed < limit, "{limit}: {caps:?}");
        }
        let fitting = DescriptorCaps {
            connections: 336,
            turns: 28,
            workers: 28,
            programs: 32,
            service_calls: 128,
        };
        assert_eq!(caps(1_024, WANTED), fitting);
    }

    #[test]
    fn owner_keeps_its_proportion() {
        assert_eq!(scaled(2_500, 10_000, 432), 108);
        assert_eq!(scaled(20_000, 10_000, 432), 432);
        assert_eq!(scaled(1, 10_000, 432), 1);
    }
}
