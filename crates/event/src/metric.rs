//! Names of metrics as `/metrics` prints them: one prefix, `_total` for counters, seconds and bytes as
//! units. The documents have dotted names; the help text keeps them (D-16).

use std::collections::BTreeMap;
use std::sync::Arc;

/// A metric of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDef {
    /// The name in `/metrics`.
    pub name: &'static str,
    /// The name in the documents, which may have another unit.
    pub dotted: &'static str,
    /// One line for people.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($const:ident = $name:literal, $dotted:literal, $help:literal;)+) => {
        $(#[doc = $help] pub const $const: &str = $name;)+
        /// Every metric of the server.
        pub const ALL: &[MetricDef] = &[
            $(MetricDef { name: $name, dotted: $dotted, help: $help }),+
        ];
    };
}

/// The dimensions that all series of one turn share (S1-133); those that do not apply are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TurnDimensions {
    /// The version of the agent definition.
    pub agent_definition: String,
    /// The kind of message, where a message service started the turn; one of a bounded list.
    pub dm_type: String,
    /// The flags of experiments that are on for the turn's owner, or `control`.
    pub experiment_arm: String,
    /// The verticals of the sub-agents that the turn may call.
    pub verticals: SubAgentVerticals,
}

/// The vertical of each sub-agent that has one, by the id of the sub-agent.
pub type SubAgentVerticals = Arc<BTreeMap<String, String>>;

impl TurnDimensions {
    /// The dimensions of a turn of which only the definition is known.
    pub fn of_definition(agent_definition: &str) -> Self {
        Self {
            agent_definition: agent_definition.to_owned(),
            ..Self::default()
        }
    }

    /// The labels of a series of the orchestrator.
    pub fn labels(&self) -> [(&'static str, String); 5] {
        self.labels_of("", "")
    }

    /// The labels of a series of a sub-agent, whose vertical is looked up.
    pub fn sub_agent_labels(&self, sub_agent_id: &str) -> [(&'static str, String); 5] {
        let vertical = self.verticals.get(sub_agent_id);
        self.labels_of(vertical.map_or("", String::as_str), sub_agent_id)
    }

    /// The labels of a series of a sub-agent in a vertical.
    pub fn labels_of(&self, vertical: &str, sub_agent_id: &str) -> [(&'static str, String); 5] {
        [
            ("vertical", vertical.to_owned()),
            ("sub_agent_id", sub_agent_id.to_owned()),
            ("dm_type", self.dm_type.clone()),
            ("experiment_arm", self.experiment_arm.clone()),
            ("agent_definition_version", self.agent_definition.clone()),
        ]
    }
}

/// The dimensions of a `stream.*` metric that belongs to no turn.
pub fn dimensions(agent_definition: &str) -> [(&'static str, String); 5] {
    TurnDimensions::of_definition(agent_definition).labels()
}

/// Histograms with their own buckets, given by upper bounds. Values above the last bound fall into
/// the unbounded bucket: [`DISPATCH_INTENTS`] distinguishes 1, 2, and 3 or more.
pub const BUCKETS: &[(&str, &[f64])] = &[
    (DISPATCH_INTENTS, &[1.0, 2.0]),
    (
        DISPATCH_STATUS_EVENTS_PER_INVOCATION,
        &[0.0, 1.0, 2.0, 3.0, 5.0, 10.0],
    ),
    (DISPATCH_FANOUT_SUCCESS_RATIO, &[0.0, 0.25, 0.5, 0.75, 0.99]),
    // A model call takes from milliseconds to minutes, longer than anything else measured here.
    (
        LLM_CALL_DURATION_SECONDS,
        &[
            0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0,
        ],
    ),
    // A decision is a few instructions: from a tenth of a microsecond.
    (
        STREAM_POLICY_DECISION_SECONDS,
        &[
            0.000_000_1,
            0.000_000_25,
            0.000_000_5,
            0.000_001,
            0.000_002_5,
            0.000_005,
            0.000_01,
            0.000_05,
            0.001,
        ],
    ),
];

metrics! {
    WS_CONNECTIONS = "turnwire_ws_connections", "ws.connections", "Open WebSocket connections";
    WS_QUEUE_DEPTH_MAX = "turnwire_ws_queue_depth_max", "ws.queue_depth_max", "The largest lag of a connection behind its ring, in events";
    WS_SLOW_CLIENT_CLOSED_TOTAL = "turnwire_ws_slow_client_closed_total", "ws.slow_client_closed_total", "Connections closed because they were too slow";
    WS_FRAME_DROPPED_TOTAL = "turnwire_ws_frame_dropped_total", "ws.frame_dropped_total", "Events not delivered because their connection was closed";
    WS_REPLAY_EVENTS_TOTAL = "turnwire_ws_replay_events_total", "ws.replay_events_total", "Persisted events replayed";
    WS_SEAM_SECONDS = "turnwire_ws_seam_seconds", "ws.seam_ms", "Time from subscribe to live";
    WS_SUBSCRIBE_ERROR_TOTAL = "turnwire_ws_subscribe_error_total", "ws.subscribe_error_total", "Subscribes refused, by code";
    WS_EVENTS_SENT_TOTAL = "turnwire_ws_events_sent_total", "ws.events_sent_total", "Events written to connections";
    SSE_STREAMS = "turnwire_sse_streams", "sse.streams", "Open chat streams";
    STREAM_EVENTS_EMITTED_TOTAL = "turnwire_stream_events_emitted_total", "stream.events.emitted_total", "Chat frames written, by type";
    STREAM_TERMINAL_FRAME_EMITTED_TOTAL = "turnwire_stream_terminal_frame_emitted_total", "stream.terminal_frame.emitted_total", "Terminal chat frames written, by type";
    STREAM_ERROR_FRAME_EMITTED_TOTAL = "turnwire_stream_error_frame_emitted_total", "stream.error_frame.emitted_total", "Error chat frames written, by code";
    STREAM_SSE_FRAME_DROPPED_TOTAL = "turnwire_stream_sse_frame_dropped_total", "stream.sse.frame_dropped_total", "Chat frames not delivered because their stream was closed";
    STREAM_FRAME_OVERSIZE_TOTAL = "turnwire_stream_frame_oversize_total", "stream.frame.oversize_total", "Chat frames above 256 KB";
    STREAM_CANCELLATION_TOTAL = "turnwire_stream_cancellation_total", "stream.cancellation_total", "Cancelled turns, by code";
    STREAM_TTFE_SECONDS = "turnwire_stream_ttfe_seconds", "stream.ttfe_ms", "Time from a request for a chat stream to its first frame on the socket";
    STREAM_RENDERING_POLICY_APPLIED_TOTAL = "turnwire_stream_rendering_policy_applied_total", "stream.rendering_policy_applied_total", "Events that passed the interceptor, by type and policy";
    STREAM_STATUS_EVENT_EMITTED_TOTAL = "turnwire_stream_status_event_emitted_total", "stream.status_event.emitted_total", "Registered statuses emitted, by id, visible or hidden";
    STREAM_POLICY_DECISION_SECONDS = "turnwire_stream_policy_decision_seconds", "stream.policy_decision_us", "Time of one interceptor decision, sampled one in 64";
    STREAM_UNREGISTERED_EVENT_REJECTED_TOTAL = "turnwire_stream_unregistered_event_rejected_total", "stream.unregistered_event_rejected_total", "Status ids refused when a pack was checked: not registered, or not for that sub-agent";
    STREAM_REGISTRY_SIZE = "turnwire_stream_registry_size", "stream.registry.size", "Status ids in the registry; review them above 50";
    STATUS_EVENT_UNREGISTERED_ID_TOTAL = "turnwire_status_event_unregistered_id_total", "status_event.unregistered_id", "Statuses withheld because their id is not registered, or not for their emitter";
    RELAY_FAULTS_TOTAL = "turnwire_relay_faults_total", "relay.faults_total", "Calls of upstreams without a whole answer, by cause";
    RELAY_UNKNOWN_EVENTS_TOTAL = "turnwire_relay_unknown_events_total", "relay.unknown_events_total", "Events of upstreams that were left out because their type is unknown";
    RELAY_RESPONSE_IDS_REPLACED_TOTAL = "turnwire_relay_response_ids_replaced_total", "relay.response_ids_replaced_total", "Response ids of upstreams that were malformed, in use, late or could not be looked up, and replaced by the turn's own";
    RELAY_DISCARDED_AFTER_TERMINAL_TOTAL = "turnwire_relay_discarded_after_terminal_total", "relay.discarded_after_terminal_total", "Events of upstreams that came after the end of their turn";
    LLM_CALLS_TOTAL = "turnwire_llm_calls_total", "llm.calls_total", "Model calls ended, by model and status";
    LLM_TOKENS_TOTAL = "turnwire_llm_tokens_total", "llm.tokens_total", "Tokens of model calls, by model and kind: input, cached (part of input), output, reasoning (part of output)";
    LLM_COST_USD_TOTAL = "turnwire_llm_cost_usd_total", "llm.cost_usd_total", "Cost of model calls in US dollars, by model; that of stopped and failed calls is estimated";
    LLM_CALL_DURATION_SECONDS = "turnwire_llm_call_duration_seconds", "llm.call_duration_ms", "Time of one model call from its start to its end, by model";
    TURN_STARTED_TOTAL = "turnwire_turn_started_total", "turn.started_total", "Turns accepted";
    TURN_COMPLETED_TOTAL = "turnwire_turn_completed_total", "turn.completed_total", "Turns ended without a cancel, by status";
    TURN_CANCELLED_TOTAL = "turnwire_turn_cancelled_total", "turn.cancelled_total", "Cancelled turns, by phase";
    TURN_REFUSED_TOTAL = "turnwire_turn_emission_refused_total", "turn.emission_refused_total", "Events refused because their turn had ended or was being cancelled";
    TURN_LET_GO_TIMEOUT_TOTAL = "turnwire_turn_let_go_timeout_total", "turn.let_go_timeout_total", "Turns ended although a task of their producer, tools or sub-agents was still running one second after it was stopped";
    TURN_LEFT_BEHIND_TOTAL = "turnwire_turn_left_behind_total", "turn.left_behind_total", "Processes and workers still running when their turn ended";
    TURN_QUEUED = "turnwire_turn_queued", "turn.queued", "Turns waiting in queues";
    TURN_REPEATED_TOTAL = "turnwire_turn_repeated_total", "turn.repeated_total", "Submits answered with an existing turn, by idempotency key";
    STREAM_WRITER_OVERHEAD_SECONDS = "turnwire_stream_writer_overhead_seconds", "stream.writer.overhead_ms", "Time of one emit (interceptor, stamps, sequencer), sampled one in eight";
    DISPATCH_INTENTS = "turnwire_dispatch_intents", "dispatch.intent_count", "Sub-agents requested by one response of the model, the largest of a turn that requested any: 1, 2, 3 or more";
    DISPATCH_CAP_EXCEEDED_TOTAL = "turnwire_dispatch_cap_exceeded_total", "dispatch.cap_exceeded_total", "Turns that requested more sub-agents than the cap";
    DISPATCH_SUBAGENT_LATENCY_SECONDS = "turnwire_dispatch_subagent_latency_seconds", "dispatch.subagent.latency_ms", "Time from the start of a sub-agent to its end, by sub-agent";
    DISPATCH_STATUS_EVENTS_PER_INVOCATION = "turnwire_dispatch_status_events_per_invocation", "dispatch.status_events_per_invocation", "Status events emitted by one invocation of a sub-agent, by sub-agent";
    DISPATCH_FANOUT_SUCCESS_RATIO = "turnwire_dispatch_fanout_success_ratio", "dispatch.fanout.success_ratio", "Share of successful sub-agents in a step with several; interrupted steps do not count";
    DISPATCH_AXIS_FAILURE_TOTAL = "turnwire_dispatch_axis_failure_total", "dispatch.axis_failure_total", "Failures reported to clients, by axis: 1 a sub-agent, 2 a data service, 3 some of several";
    LOG_EVENTS_TOTAL = "turnwire_log_events_total", "log.events_total", "Events committed";
    LOG_COMMITS_TOTAL = "turnwire_log_commits_total", "log.commits_total", "Commits";
    LOG_COMMIT_SECONDS = "turnwire_log_commit_seconds", "log.commit_ms", "Time of one commit";
    LOG_BACKGROUND_SECONDS = "turnwire_log_background_seconds", "log.background_ms", "Time of one piece of background work of the store, by task";
    LOG_BACKGROUND_DONE_TIME = "turnwire_log_background_done_timestamp_seconds", "log.background_done", "Unix time at which background work of the store was last finished, by task";
    LOG_DATABASE_BYTES = "turnwire_log_database_bytes", "log.database_bytes", "Size of the database in its pages, as of the last checkpoint";
    LOG_FREE_BYTES = "turnwire_log_free_bytes", "log.free_bytes", "Size of the free pages of the database, as of the last checkpoint";
    LOG_WAL_BYTES = "turnwire_log_wal_bytes", "log.wal_bytes", "Size of the committed frames in the write-ahead log, as of the last checkpoint";
    LOG_RELEASED_BYTES_TOTAL = "turnwire_log_released_bytes_total", "log.released_bytes_total", "Bytes of free pages that were given back to the disk";
    LOG_STORAGE_FULL = "turnwire_log_storage_full", "log.storage_full", "1 while the disk is full";
    LOG_WAL_FRAMES_LOST_TOTAL = "turnwire_log_wal_frames_lost_total", "log.wal_frames_lost_total", "Committed WAL frames that the start found damaged or missing; any above 0 is a loss of data";
    SESSIONS_OPEN = "turnwire_session_open", "session.open", "Sessions held in memory";
    SESSION_DAMAGED_TOTAL = "turnwire_session_damaged_total", "session.damaged_total", "Reads and writes that found a session damaged, which is quarantined; any above 0 is a loss of data";
    SERVER_READY = "turnwire_server_ready", "server.ready", "1 while the server accepts turns, as /readyz answers";
    SERVER_START_TIMESTAMP_SECONDS = "turnwire_server_start_timestamp_seconds", "server.start_timestamp", "When the process started, in seconds since 1970";
    RINGS_BYTES = "turnwire_session_rings_bytes", "session.rings_bytes", "Bytes of released events and their frames held in memory by all sessions";
    RINGS_EVICTED_TOTAL = "turnwire_session_rings_evicted_total", "session.rings_evicted_total", "Events evicted from memory to stay within the budget of all sessions; clients read them from the log";
    BUS_EVENTS_DROPPED_TOTAL = "turnwire_session_bus_events_dropped_total", "session.bus_events_dropped_total", "Notices about clients (bus.*) not stored because their session has session.bus_events_max of them";
    LIMIT_REFUSED_TOTAL = "turnwire_limit_refused_total", "limit.refused_total", "Requests refused because a limit was reached, by limit and scope: owner or all, of quotas principal or tenant";
    DISPATCH_OVERHEAD_SECONDS = "turnwire_dispatch_overhead_seconds", "dispatch.overhead_ms", "Time of one sub-agent invocation outside of models and tools, from the parsed tool call to its handled result; the wait for the commit of its tool calls included";
    AUTH_REFUSED_TOTAL = "turnwire_auth_refused_total", "auth.refused_total", "Requests whose token was missing or not accepted, by reason";
    AUTH_RELOADS_TOTAL = "turnwire_auth_reloads_total", "auth.reloads_total", "Loads of tokens or keys that changed something or failed, by result";
    HTTP_REQUESTS_TOTAL = "turnwire_http_requests_total", "http.requests_total", "Requests answered, by method, route and status";
    STREAM_CCS_ERROR_TOTAL = "turnwire_stream_ccs_error_total", "stream.ccs_error_total", "Failed calls to data services, by enricher and reason";
    PS6_PRINCIPAL_MISMATCH_TOTAL = "turnwire_ps6_envelope_principal_mismatch_total", "ps6.envelope.principal_mismatch_total", "Answers of data services for another principal, by consumer; any above 0 is an incident";
    PS6_PRINCIPAL_REFUSED_TOTAL = "turnwire_ps6_principal_refused_total", "ps6.principal_refused_total", "Requests that a data service refused as made for another principal (403 principal_mismatch), by consumer; any above 0 is an incident";
    PS6_VERSION_MISMATCH_TOTAL = "turnwire_ps6_envelope_version_mismatch_total", "ps6.envelope.version_mismatch_total", "Answers of data services with another major version, by enricher";
    PS6_REASON_UNKNOWN_TOTAL = "turnwire_ps6_envelope_reason_unknown_total", "ps6.envelope.reason_unknown_total", "Answers of data services with an unknown reason, by enricher";
    TURN_UNWATCHED_TOTAL = "turnwire_turn_unwatched_total", "turn.unwatched_total", "Turns started by a scheduler or a message service, by origin and kind of message";
    RELOADS_TOTAL = "turnwire_reloads_total", "reloads_total", "Reloads on SIGHUP, by part and status: applied, unchanged, refused; those of the pack are in turnwire_pack_reloads_total";
    PACK_RELOADS_TOTAL = "turnwire_pack_reloads_total", "pack.reloads_total", "Pack reloads, by result: applied, refused, unreadable";
    MCP_SERVER_UP = "turnwire_mcp_server_up", "mcp.server_up", "1 while an MCP server is connected, by server";
    MCP_SERVER_RESTARTS_TOTAL = "turnwire_mcp_server_restarts_total", "mcp.server_restarts_total", "Restart attempts of MCP servers, by server";
    MCP_CALLS_TOTAL = "turnwire_mcp_calls_total", "mcp.calls_total", "Calls to MCP servers, by server and outcome: ok, error, refused, timeout, broke, away, busy, cancelled";
    MCP_NOTIFICATIONS_DROPPED_TOTAL = "turnwire_mcp_notifications_dropped_total", "mcp.notifications_dropped_total", "Notifications of MCP servers dropped over the limit, by server";
    TOOL_GUARD_DEATHS_TOTAL = "turnwire_tool_guard_deaths_total", "tool.guard_deaths_total", "Guards of programs that were killed or failed; the server killed what they guarded";
    TOOL_ORPHANS_KILLED_TOTAL = "turnwire_tool_orphans_killed_total", "tool.orphans_killed_total", "Processes of programs that outlived their guard and were killed by the server";
    OTEL_DROPPED_TOTAL = "turnwire_otel_dropped_total", "otel.dropped_total", "Spans that no collector got, by reason: queue_full, limit, unavailable, refused, rejected, shutdown";
    OTEL_EXPORTED_TOTAL = "turnwire_otel_exported_total", "otel.exported_total", "Spans that a collector has taken";
    ENGINE_TASKS_LIVE = "turnwire_engine_tasks_live", "engine.tasks_live", "Running engine tasks, including abandoned calls to data services";
}
