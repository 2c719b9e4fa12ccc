//! Translates [`ServerConfig`] into the options of each part.

use std::sync::Arc;
use std::time::Duration;

use turnwire_agent::RetryOptions;
use turnwire_fair::FairLimits;
use turnwire_log::sqlite;
use turnwire_model::cassette::{CassetteWriter, CassetteWriterError};
use turnwire_model::{CallTimeouts, ModelResponseLimits};
use turnwire_relay::UpstreamLimits;
use turnwire_tool::runner::FolderLimits;

use crate::config::store::DurabilitySetting;
use crate::config::{ServerConfig, owner_share};
use crate::host;

/// The limits of remote model providers, with the cassette that records them.
pub(super) fn bounds(config: &ServerConfig) -> Result<host::ProviderLimits, CassetteWriterError> {
    let (model, ms) = (&config.model, Duration::from_millis);
    Ok(host::ProviderLimits {
        timeouts: CallTimeouts {
            connect: ms(model.connect_ms),
            first_byte: ms(model.first_byte_ms),
            idle: ms(model.idle_ms),
            silence: ms(model.silence_ms),
            total: ms(model.total_ms),
        },
        limits: ModelResponseLimits {
            frame_bytes_max: model.frame_bytes_max,
            call_bytes_max: model.call_bytes_max,
        },
        retries: RetryOptions {
            attempts: model.retry_attempts,
            base_delay: ms(model.retry_base_ms),
            max_delay: ms(model.retry_max_ms),
        },
        allow: config.dial.allow.clone(),
        deck: model
            .record
            .as_deref()
            .map(CassetteWriter::open)
            .transpose()?
            .map(Arc::new),
        pace: f64::from(model.cassette_pace_percent) / 100.0,
        script_pace_percent: model.script_pace_percent,
    })
}

/// The limits of upstreams.
pub(super) fn upstream(config: &ServerConfig) -> UpstreamLimits {
    let (relay, ms) = (&config.relay, Duration::from_millis);
    UpstreamLimits {
        connect: ms(relay.connect_ms),
        idle: ms(relay.idle_ms),
        event_bytes_max: relay.event_bytes_max,
        stream_bytes_max: relay.stream_bytes_max,
        text_bytes_max: relay.text_bytes_max,
    }
}

/// The limits of concurrent programs.
pub(super) fn program_limits(config: &ServerConfig) -> FairLimits {
    let tool = &config.tool;
    call_limits(config, tool.programs_max, tool.programs_per_owner_max)
}

/// The limits of the folder of a session.
pub(super) fn folder_limits(config: &ServerConfig) -> FolderLimits {
    FolderLimits {
        bytes: config.tool.folder_bytes_max,
        entries: config.tool.folder_entries_max,
    }
}

/// The limits of concurrent calls to one MCP server.
pub(super) fn mcp_call_limits(config: &ServerConfig) -> FairLimits {
    let tool = &config.tool;
    call_limits(config, tool.mcp_calls_max, tool.mcp_calls_per_owner_max)
}

/// The limits of concurrent calls to data services.
pub(super) fn service_call_limits(config: &ServerConfig) -> FairLimits {
    let tool = &config.tool;
    call_limits(
        config,
        tool.service_calls_max,
        tool.service_calls_per_owner_max,
    )
}

fn call_limits(config: &ServerConfig, total: usize, per_owner: usize) -> FairLimits {
    let tool = &config.tool;
    FairLimits {
        total,
        per_owner: owner_share(per_owner, total),
        waiting: tool.waiting_max,
        waiting_per_owner: owner_share(tool.waiting_per_owner_max, tool.waiting_max),
    }
}

pub(super) fn store(config: &ServerConfig) -> sqlite::SqliteOptions {
    let durability = match config.store.durability {
        DurabilitySetting::Full => sqlite::CommitDurability::Full,
        DurabilitySetting::Relaxed => sqlite::CommitDurability::Relaxed,
    };
    sqlite::SqliteOptions {
        dir: config.home.clone(),
        durability,
    }
}

/// The longest time after its grace until a killed program has exited: a turn that waits less would
/// end before the programs it has started.
const KILLED_MS: u64 = 2_000;

pub(super) fn session(config: &ServerConfig) -> turnwire_session::Options {
    let ms = Duration::from_millis;
    let killed_ms = config.tool.grace_ms + KILLED_MS;
    turnwire_session::Options {
        principal_quota: config.quota.of_principal(),
        tenant_quota: config.quota.of_tenant(),
        turn_timeout: ms(config.turn.timeout_ms),
        turn_idle: ms(config.turn.idle_ms),
        stop_wait: ms(config.turn.stop_wait_ms.max(killed_ms)),
        running_max: config.turn.running_max,
        running_max_per_owner: owner_share(
            config.turn.running_max_per_owner,
            config.turn.running_max,
        ),
        queue_max: config.turn.queue_max,
        queued_max: config.turn.queued_max,
        queued_max_per_owner: owner_share(config.turn.queued_max_per_owner, config.turn.queued_max),
        dm_types: config.turn.dm_types.clone(),
        idempotency_ttl: Duration::from_secs(config.turn.key_ttl_s),
        ring_events: config.stream.ring_events,
        ring_bytes: config.stream.ring_bytes,
        rings_bytes: config.stream.rings_bytes,
        replay_bytes: config.stream.pending_bytes,
        scan_max: config.store.scan_max,
        read_slots: config.store.read_slots,
        read_slots_per_owner: owner_share(
            config.store.read_slots_per_owner,
            config.store.read_slots,
        ),
        reads_waiting_per_owner: config.store.reads_waiting_per_owner,
        write_slots: config.store.write_slots,
        write_slots_per_owner: owner_share(
            config.store.write_slots_per_owner,
            config.store.write_slots,
        ),
        writes_waiting_per_owner: config.store.writes_waiting_per_owner,
        large_write_slots: config.store.large_write_slots,
        inputs_bytes_max: config.turn.inputs_bytes_max,
        inputs_bytes_max_per_owner: owner_share(
            config.turn.inputs_bytes_max_per_owner,
            config.turn.inputs_bytes_max,
        ),
        history_cache_bytes: config.session.history_cache_bytes,
        idle_unload: ms(config.session.idle_unload_ms),
        open_max: config.session.open_max,
        open_max_per_owner: owner_share(config.session.open_max_per_owner, config.session.open_max),
        workers_max: config.session.workers_max,
        workers_all_max: config.session.workers_all_max,
        worker_depth_max: config.session.worker_depth_max,
        bus_events_max: config.session.bus_events_max,
        workers_running_max: config.session.workers_running_max,
        workers_running_max_per_owner: owner_share(
            config.session.workers_running_max_per_owner,
            config.session.workers_running_max,
        ),
        checkpoint_interval: ms(config.session.checkpoint_ms),
        retention: Duration::from_secs(config.store.retention_s),
        audit_retention: Duration::from_secs(config.store.audit_retention_s),
        jobs_max: config.turn.jobs_max,
        retention_interval: ms(config.store.retention_sweep_ms),
        piece: turnwire_session::PieceBudget {
            bytes: config.store.piece_bytes,
            time: ms(config.store.piece_ms),
            ..turnwire_session::PieceBudget::default()
        },
        free_bytes_max: config.store.free_bytes_max,
        erase_interval: ms(config.store.erase_ms),
        ..turnwire_session::Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingSources;

    #[test]
    fn settings_never_give_everything_to_one_owner() {
        let nowhere = SettingSources {
            home: Some("/nonexistent/turnwire".into()),
            ..SettingSources::default()
        };
        let mut config = ServerConfig::load(&nowhere).expect("defaults");
        let (tool, turn) = (&mut config.tool, &mut config.turn);
        (tool.programs_max, tool.programs_per_owner_max) = (8, 8);
        (tool.mcp_calls_max, tool.mcp_calls_per_owner_max) = (8, 8);
        (tool.service_calls_max, tool.service_calls_per_owner_max) = (8, 8);
        (tool.waiting_max, tool.waiting_per_owner_max) = (8, 8);
        (turn.running_max, turn.running_max_per_owner) = (8, 8);
        (turn.queued_max, turn.queued_max_per_owner) = (8, 8);
        let (store, session) = (&mut config.store, &mut config.session);
        (store.read_slots, store.read_slots_per_owner) = (8, 8);
        (store.write_slots, store.write_slots_per_owner) = (8, 8);
        (session.open_max, session.open_max_per_owner) = (8, 8);
        session.workers_running_max = 8;
        session.workers_running_max_per_owner = 8;
        for limits in [
            program_limits(&config),
            mcp_call_limits(&config),
            service_call_limits(&config),
        ] {
            assert_eq!((limits.per_owner, limits.waiting_per_owner), (6, 6));
        }
        let options = super::session(&config);
        for share in [
            options.running_max_per_owner,
            options.queued_max_per_owner,
            options.read_slots_per_owner,
            options.write_slots_per_owner,
            options.open_max_per_owner,
            options.workers_running_max_per_owner,
        ] {
            assert_eq!(share, 6);
        }
    }
}
