//! What other servers reach, to be put beside a table. None of it is measured here: the figures
//! were taken once, on a machine of the same class and in the same manner, and stay as they are.

/// A table of figures from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerFigures {
    pub columns: &'static [&'static str],
    pub rows: &'static [&'static [&'static str]],
}

/// What is said above every such table.
pub const ABOVE: &str = "Others, not measured in this run: taken once on two cores (server on one, \
                         load client on the other), loopback, events of about 300 bytes, medians of \
                         3–5 runs, ±20 %. To be compared by their order, not by their digits.";

/// Fan-out, at most 16 messages outstanding.
pub const FANOUT: PeerFigures = PeerFigures {
    columns: &[
        "server",
        "1→100",
        "1→1,000",
        "CPU µs a delivery",
        "1→1,000, window 1",
    ],
    rows: &[
        &["nchan 1.3.6 (C, nginx), SSE", "177k", "137k", "7.0", "116k"],
        &["nchan 1.3.6, WebSocket", "257k", "139k", "6.9", "–"],
        &["NATS 2.9 core", "1.11M", "570k", "1.8", "–"],
        &["Redis 7.0 pub/sub", "1.52M", "853k", "1.2", "–"],
    ],
};

/// Memory of idle clients.
pub const IDLE: PeerFigures = PeerFigures {
    columns: &["server", "KB an idle client"],
    rows: &[
        &["nchan 1.3.6 (C, nginx), SSE", "10.1"],
        &["NATS 2.9 core", "15.8"],
        &["Redis 7.0 pub/sub", "8.4"],
    ],
};

/// Turns of 200 events, streamed, on one core.
pub const TURNS: PeerFigures = PeerFigures {
    columns: &[
        "server",
        "at once",
        "first event p50 ms",
        "events/s in all",
        "CPU µs an event",
    ],
    rows: &[
        &[
            "Vercel AI SDK 6 on Node",
            "1 / 10 / 50",
            "8 / 166 / 789",
            "10.4k / 10.6k / 11.8k",
            "84–95",
        ],
        &[
            "Google ADK 2.13, memory",
            "1 / 10 / 50",
            "2.9 / 17 / 78",
            "5.9k / 5.2k / 3.4k",
            "167–284",
        ],
        &[
            "Google ADK 2.13, its SQLite default",
            "1 / 10",
            "11 / 174",
            "396 / 419",
            "2,060",
        ],
        &[
            "LangGraph dev server, 50 jobs (development runtime, polls every 0.5 s)",
            "1 / 10 / 50",
            "948 / 654 / 881",
            "206 / 1.9k / 3.8k",
            "188–294",
        ],
    ],
};
