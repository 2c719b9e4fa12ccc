//! Names of metrics, in the dotted form the documents use; `/metrics` prints them with
//! underscores and keeps the dotted name in the help text (D-16).

macro_rules! metrics {
    ($($const:ident = $name:literal, $help:literal;)+) => {
        $(#[doc = $help] pub const $const: &str = $name;)+
        /// Every metric with its help text.
        pub const ALL: &[(&str, &str)] = &[$(($name, $help)),+];
    };
}

/// The dimensions of every `stream.*` metric (S1-133) for what the orchestrator does.
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

/// Histograms that have buckets of their own, with the upper bounds of these. What is above the
/// last bound is the bucket without one: `dispatch.intent_count` tells 1, 2, and 3 or more apart.
pub const BUCKETS: &[(&str, &[f64])] = &[
    (DISPATCH_INTENT_COUNT, &[1.0, 2.0]),
    (
        DISPATCH_STATUS_EVENTS_PER_INVOCATION,
        &[0.0, 1.0, 2.0, 3.0, 5.0, 10.0],
    ),
    (DISPATCH_FANOUT_SUCCESS_RATIO, &[0.0, 0.25, 0.5, 0.75, 0.99]),
    // A model takes from a blink to minutes, longer than anything else that is timed here.
    (
        LLM_CALL_DURATION_MS,
        &[
            10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 20_000.0,
            60_000.0, 120_000.0, 300_000.0,
        ],
    ),
];

metrics! {
    WS_CONNECTIONS = "ws.connections", "WebSocket connections open now";
    WS_QUEUE_DEPTH_MAX = "ws.queue_depth_max", "The furthest any connection has been behind its ring";
    WS_SLOW_CLIENT_CLOSED_TOTAL = "ws.slow_client_closed_total", "Connections closed because they were too slow";
    WS_FRAME_DROPPED_TOTAL = "ws.frame_dropped_total", "Events not delivered to connections that were cut";
    WS_REPLAY_EVENTS_TOTAL = "ws.replay_events_total", "Persisted events replayed";
    WS_SEAM_MS = "ws.seam_ms", "Time from subscribe to live";
    WS_SUBSCRIBE_ERROR_TOTAL = "ws.subscribe_error_total", "Subscribes refused, by code";
    WS_EVENTS_SENT_TOTAL = "ws.events_sent_total", "Events written to connections";
    SSE_STREAMS = "sse.streams", "Chat streams open now";
    STREAM_EVENTS_EMITTED_TOTAL = "stream.events.emitted_total", "Chat frames written, by type";
    STREAM_TERMINAL_FRAME_EMITTED_TOTAL = "stream.terminal_frame.emitted_total", "Terminal chat frames written, by type";
    STREAM_ERROR_FRAME_EMITTED_TOTAL = "stream.error_frame.emitted_total", "Error chat frames written, by code";
    STREAM_SSE_FRAME_DROPPED_TOTAL = "stream.sse.frame_dropped_total", "Chat frames not delivered to clients that were cut";
    STREAM_FRAME_OVERSIZE_TOTAL = "stream.frame.oversize_total", "Chat frames above 256 KB";
    STREAM_CANCELLATION_TOTAL = "stream.cancellation_total", "Turns ended by a cancel, by code";
    STREAM_TTFE_MS = "stream.ttfe_ms", "Time from a request for a chat stream to its first frame on the socket";
    STREAM_RENDERING_POLICY_APPLIED_TOTAL = "stream.rendering_policy_applied_total", "Events that passed the interceptor, by type and policy";
    STREAM_STATUS_EVENT_EMITTED_TOTAL = "stream.status_event.emitted_total", "Registered statuses emitted, by id, shown or not";
    STREAM_POLICY_DECISION_US = "stream.policy_decision_us", "Time of one decision of the interceptor, measured on one in 64";
    STREAM_UNREGISTERED_EVENT_REJECTED_TOTAL = "stream.unregistered_event_rejected_total", "Status ids refused when a pack was checked: not registered, or not for that sub-agent";
    STREAM_REGISTRY_SIZE = "stream.registry.size", "Status ids in the registry; above 50 it is time to look through them";
    STATUS_EVENT_UNREGISTERED_ID = "status_event.unregistered_id", "Statuses withheld because their id is not registered, or not for who emitted it";
    LLM_CALLS_TOTAL = "llm.calls_total", "Model calls ended, by model and status";
    LLM_TOKENS_TOTAL = "llm.tokens_total", "Tokens of model calls that completed, by model and kind: input, cached (of the input), output, reasoning (of the output)";
    LLM_COST_USD_TOTAL = "llm.cost_usd_total", "What model calls that completed have cost in US dollars, by model";
    LLM_CALL_DURATION_MS = "llm.call_duration_ms", "Time of one model call from its start to its end, by model";
    TURN_STARTED_TOTAL = "turn.started_total", "Turns accepted";
    TURN_COMPLETED_TOTAL = "turn.completed_total", "Turns ended without a cancel, by status";
    TURN_CANCELLED_TOTAL = "turn.cancelled_total", "Turns ended by a cancel, by phase";
    TURN_REFUSED_TOTAL = "turn.emission_refused_total", "Events refused because their turn had ended or was stopping";
    TURN_LET_GO_TIMEOUT_TOTAL = "turn.let_go_timeout_total", "Turns ended although their producer, or a tool or sub-agent of it, had not let go a second after it was stopped";
    TURN_LEFT_BEHIND_TOTAL = "turn.left_behind_total", "Processes and workers that were still there when their turn ended";
    TURN_QUEUED = "turn.queued", "Turns accepted that wait for the one before";
    TURN_REPEATED_TOTAL = "turn.repeated_total", "Submits answered by the turn that an earlier one with the same key made";
    STREAM_WRITER_OVERHEAD_MS = "stream.writer.overhead_ms", "Time of one emit inside the writer (interceptor, stamps, sequencer), measured on one in eight";
    DISPATCH_INTENT_COUNT = "dispatch.intent_count", "Sub-agents asked for by a turn that asked for any: 1, 2, 3 or more";
    DISPATCH_CAP_EXCEEDED_TOTAL = "dispatch.cap_exceeded_total", "Turns that asked for more sub-agents at once than may run";
    DISPATCH_SUBAGENT_LATENCY_MS = "dispatch.subagent.latency_ms", "Time from the start of a sub-agent to its end, by sub-agent";
    DISPATCH_STATUS_EVENTS_PER_INVOCATION = "dispatch.status_events_per_invocation", "Status events emitted by one invocation of a sub-agent, by sub-agent";
    DISPATCH_FANOUT_SUCCESS_RATIO = "dispatch.fanout.success_ratio", "Of several sub-agents that one step asked, the share that succeeded; a step that was cut off does not count";
    DISPATCH_AXIS_FAILURE_TOTAL = "dispatch.axis_failure_total", "Failures told to clients, by axis: 1 a sub-agent, 2 a data service, 3 some of several";
    LOG_EVENTS_TOTAL = "log.events_total", "Events committed";
    LOG_COMMITS_TOTAL = "log.commits_total", "Commits";
    LOG_COMMIT_MS = "log.commit_ms", "Time of one commit";
    LOG_STORAGE_FULL = "log.storage_full", "1 while the disk is full";
    SESSIONS_OPEN = "session.open", "Sessions held in memory";
    DISPATCH_OVERHEAD_MS = "dispatch.overhead_ms", "Time of one sub-agent invocation that no model and no tool took, from the parsed tool call to its handled result";
    HTTP_REQUESTS_TOTAL = "http.requests_total", "Requests answered, by method, route and status";
    STREAM_CCS_ERROR_TOTAL = "stream.ccs_error_total", "Calls to data services that gave nothing usable, by enricher and reason";
    PS6_PRINCIPAL_MISMATCH_TOTAL = "ps6.envelope.principal_mismatch_total", "Answers of data services for somebody else than who asked, by consumer; 0 or an incident";
    PS6_VERSION_MISMATCH_TOTAL = "ps6.envelope.version_mismatch_total", "Answers of data services of another major version, by enricher";
    PS6_REASON_UNKNOWN_TOTAL = "ps6.envelope.reason_unknown_total", "Answers of data services with a reason that the contract does not have, by enricher";
    TURN_UNWATCHED_TOTAL = "turn.unwatched_total", "Turns begun by a timer or a message service, by origin and kind of message";
    PACK_RELOADS_TOTAL = "pack.reloads_total", "Times a pack was read again, by what came of it: applied, refused, unreadable";
    MCP_SERVER_UP = "mcp.server_up", "Whether the connection to an MCP server is there, by server";
    MCP_SERVER_RESTARTS_TOTAL = "mcp.server_restarts_total", "Attempts to have an MCP server back, by server";
    MCP_CALLS_TOTAL = "mcp.calls_total", "Calls to MCP servers, by server and outcome: ok, error, refused, timeout, broke, away, cancelled";
    MCP_NOTIFICATIONS_DROPPED_TOTAL = "mcp.notifications_dropped_total", "Messages of MCP servers that nobody asked for and that were too many, by server";
    ENGINE_TASKS_LIVE = "engine.tasks_live", "Tasks of the engine that run now, calls to data services that nobody waits for any more among them";
}
