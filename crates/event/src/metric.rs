//! Names of metrics, in the dotted form the documents use; `/metrics` prints them with
//! underscores and keeps the dotted name in the help text (D-16).

macro_rules! metrics {
    ($($const:ident = $name:literal, $help:literal;)+) => {
        $(#[doc = $help] pub const $const: &str = $name;)+
        /// Every metric with its help text.
        pub const ALL: &[(&str, &str)] = &[$(($name, $help)),+];
    };
}

/// The dimensions of every `stream.*` metric (S1-133) for the orchestrator.
pub fn dimensions(agent_definition: &str) -> [(&'static str, String); 5] {
    dimensions_of(agent_definition, "", "")
}

/// The dimensions of every `stream.*` metric (S1-133); those that do not apply are empty.
pub fn dimensions_of(
    agent_definition: &str,
    vertical: &str,
    sub_agent_id: &str,
) -> [(&'static str, String); 5] {
    [
        ("vertical", vertical.to_owned()),
        ("sub_agent_id", sub_agent_id.to_owned()),
        ("dm_type", String::new()),
        ("experiment_arm", String::new()),
        ("agent_definition_version", agent_definition.to_owned()),
    ]
}

/// Histograms with their own buckets, given by upper bounds. Values above the last bound fall into
/// the unbounded bucket: `dispatch.intent_count` distinguishes 1, 2, and 3 or more.
pub const BUCKETS: &[(&str, &[f64])] = &[
    (DISPATCH_INTENT_COUNT, &[1.0, 2.0]),
    (
        DISPATCH_STATUS_EVENTS_PER_INVOCATION,
        &[0.0, 1.0, 2.0, 3.0, 5.0, 10.0],
    ),
    (DISPATCH_FANOUT_SUCCESS_RATIO, &[0.0, 0.25, 0.5, 0.75, 0.99]),
    // A model call takes from milliseconds to minutes, longer than anything else measured here.
    (
        LLM_CALL_DURATION_MS,
        &[
            10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 20_000.0,
            60_000.0, 120_000.0, 300_000.0,
        ],
    ),
];

metrics! {
    WS_CONNECTIONS = "ws.connections", "Open WebSocket connections";
    WS_QUEUE_DEPTH_MAX = "ws.queue_depth_max", "The largest lag of a connection behind its ring, in events";
    WS_SLOW_CLIENT_CLOSED_TOTAL = "ws.slow_client_closed_total", "Connections closed because they were too slow";
    WS_FRAME_DROPPED_TOTAL = "ws.frame_dropped_total", "Events not delivered because their connection was closed";
    WS_REPLAY_EVENTS_TOTAL = "ws.replay_events_total", "Persisted events replayed";
    WS_SEAM_MS = "ws.seam_ms", "Time from subscribe to live";
    WS_SUBSCRIBE_ERROR_TOTAL = "ws.subscribe_error_total", "Subscribes refused, by code";
    WS_EVENTS_SENT_TOTAL = "ws.events_sent_total", "Events written to connections";
    SSE_STREAMS = "sse.streams", "Open chat streams";
    STREAM_EVENTS_EMITTED_TOTAL = "stream.events.emitted_total", "Chat frames written, by type";
    STREAM_TERMINAL_FRAME_EMITTED_TOTAL = "stream.terminal_frame.emitted_total", "Terminal chat frames written, by type";
    STREAM_ERROR_FRAME_EMITTED_TOTAL = "stream.error_frame.emitted_total", "Error chat frames written, by code";
    STREAM_SSE_FRAME_DROPPED_TOTAL = "stream.sse.frame_dropped_total", "Chat frames not delivered because their stream was closed";
    STREAM_FRAME_OVERSIZE_TOTAL = "stream.frame.oversize_total", "Chat frames above 256 KB";
    STREAM_CANCELLATION_TOTAL = "stream.cancellation_total", "Cancelled turns, by code";
    STREAM_TTFE_MS = "stream.ttfe_ms", "Time from a request for a chat stream to its first frame on the socket";
    STREAM_RENDERING_POLICY_APPLIED_TOTAL = "stream.rendering_policy_applied_total", "Events that passed the interceptor, by type and policy";
    STREAM_STATUS_EVENT_EMITTED_TOTAL = "stream.status_event.emitted_total", "Registered statuses emitted, by id, visible or hidden";
    STREAM_POLICY_DECISION_US = "stream.policy_decision_us", "Time of one interceptor decision, sampled one in 64";
    STREAM_UNREGISTERED_EVENT_REJECTED_TOTAL = "stream.unregistered_event_rejected_total", "Status ids refused when a pack was checked: not registered, or not for that sub-agent";
    STREAM_REGISTRY_SIZE = "stream.registry.size", "Status ids in the registry; review them above 50";
    STATUS_EVENT_UNREGISTERED_ID = "status_event.unregistered_id", "Statuses withheld because their id is not registered, or not for their emitter";
    LLM_CALLS_TOTAL = "llm.calls_total", "Model calls ended, by model and status";
    LLM_TOKENS_TOTAL = "llm.tokens_total", "Tokens of completed model calls, by model and kind: input, cached (part of input), output, reasoning (part of output)";
    LLM_COST_USD_TOTAL = "llm.cost_usd_total", "Cost of completed model calls in US dollars, by model";
    LLM_CALL_DURATION_MS = "llm.call_duration_ms", "Time of one model call from its start to its end, by model";
    TURN_STARTED_TOTAL = "turn.started_total", "Turns accepted";
    TURN_COMPLETED_TOTAL = "turn.completed_total", "Turns ended without a cancel, by status";
    TURN_CANCELLED_TOTAL = "turn.cancelled_total", "Cancelled turns, by phase";
    TURN_REFUSED_TOTAL = "turn.emission_refused_total", "Events refused because their turn had ended or was being cancelled";
    TURN_LET_GO_TIMEOUT_TOTAL = "turn.let_go_timeout_total", "Turns ended although a task of their producer, tools or sub-agents was still running one second after it was stopped";
    TURN_LEFT_BEHIND_TOTAL = "turn.left_behind_total", "Processes and workers still running when their turn ended";
    TURN_QUEUED = "turn.queued", "Turns waiting in queues";
    TURN_REPEATED_TOTAL = "turn.repeated_total", "Submits answered with an existing turn, by idempotency key";
    STREAM_WRITER_OVERHEAD_MS = "stream.writer.overhead_ms", "Time of one emit (interceptor, stamps, sequencer), sampled one in eight";
    DISPATCH_INTENT_COUNT = "dispatch.intent_count", "Sub-agents requested by a turn that requested any: 1, 2, 3 or more";
    DISPATCH_CAP_EXCEEDED_TOTAL = "dispatch.cap_exceeded_total", "Turns that requested more sub-agents than the cap";
    DISPATCH_SUBAGENT_LATENCY_MS = "dispatch.subagent.latency_ms", "Time from the start of a sub-agent to its end, by sub-agent";
    DISPATCH_STATUS_EVENTS_PER_INVOCATION = "dispatch.status_events_per_invocation", "Status events emitted by one invocation of a sub-agent, by sub-agent";
    DISPATCH_FANOUT_SUCCESS_RATIO = "dispatch.fanout.success_ratio", "Share of successful sub-agents in a step with several; interrupted steps do not count";
    DISPATCH_AXIS_FAILURE_TOTAL = "dispatch.axis_failure_total", "Failures reported to clients, by axis: 1 a sub-agent, 2 a data service, 3 some of several";
    LOG_EVENTS_TOTAL = "log.events_total", "Events committed";
    LOG_COMMITS_TOTAL = "log.commits_total", "Commits";
    LOG_COMMIT_MS = "log.commit_ms", "Time of one commit";
    LOG_STORAGE_FULL = "log.storage_full", "1 while the disk is full";
    LOG_WAL_FRAMES_LOST_TOTAL = "log.wal_frames_lost_total", "Committed WAL frames that the start found damaged or missing; any above 0 is a loss of data";
    SESSIONS_OPEN = "session.open", "Sessions held in memory";
    RINGS_BYTES = "session.rings_bytes", "Bytes of released events and their frames held in memory by all sessions";
    RINGS_EVICTED_TOTAL = "session.rings_evicted_total", "Events evicted from memory to stay within the budget of all sessions; clients read them from the log";
    LIMIT_REFUSED_TOTAL = "limit.refused_total", "Requests refused because a limit was reached, by limit and scope: owner or all";
    DISPATCH_OVERHEAD_MS = "dispatch.overhead_ms", "Time of one sub-agent invocation outside of models and tools, from the parsed tool call to its handled result";
    HTTP_REQUESTS_TOTAL = "http.requests_total", "Requests answered, by method, route and status";
    STREAM_CCS_ERROR_TOTAL = "stream.ccs_error_total", "Failed calls to data services, by enricher and reason";
    PS6_PRINCIPAL_MISMATCH_TOTAL = "ps6.envelope.principal_mismatch_total", "Answers of data services for another principal, by consumer; any above 0 is an incident";
    PS6_VERSION_MISMATCH_TOTAL = "ps6.envelope.version_mismatch_total", "Answers of data services with another major version, by enricher";
    PS6_REASON_UNKNOWN_TOTAL = "ps6.envelope.reason_unknown_total", "Answers of data services with an unknown reason, by enricher";
    TURN_UNWATCHED_TOTAL = "turn.unwatched_total", "Turns started by a scheduler or a message service, by origin and kind of message";
    PACK_RELOADS_TOTAL = "pack.reloads_total", "Pack reloads, by result: applied, refused, unreadable";
    MCP_SERVER_UP = "mcp.server_up", "1 while an MCP server is connected, by server";
    MCP_SERVER_RESTARTS_TOTAL = "mcp.server_restarts_total", "Restart attempts of MCP servers, by server";
    MCP_CALLS_TOTAL = "mcp.calls_total", "Calls to MCP servers, by server and outcome: ok, error, refused, timeout, broke, away, busy, cancelled";
    MCP_NOTIFICATIONS_DROPPED_TOTAL = "mcp.notifications_dropped_total", "Notifications of MCP servers dropped over the limit, by server";
    TOOL_GUARD_DEATHS_TOTAL = "tool.guard_deaths_total", "Guards of programs that were killed or failed; the server killed what they guarded";
    TOOL_ORPHANS_KILLED_TOTAL = "tool.orphans_killed_total", "Processes of programs that outlived their guard and were killed by the server";
    ENGINE_TASKS_LIVE = "engine.tasks_live", "Running engine tasks, including abandoned calls to data services";
}
