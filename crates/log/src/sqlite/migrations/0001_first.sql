CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE session (
  sid INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: a reader of the past cannot meet another's rows
  id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  principal TEXT NOT NULL,
  parent TEXT,
  workspace_path TEXT,
  metadata TEXT NOT NULL,
  episode_id TEXT NOT NULL,
  active_model TEXT NOT NULL,
  routing_policy_version TEXT NOT NULL,
  cost_usd REAL NOT NULL,
  turn_count INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  term INTEGER NOT NULL,
  low_seq INTEGER NOT NULL,
  low_hash BLOB NOT NULL
);
CREATE INDEX session_owner ON session (tenant, principal, id);

-- Ids of deleted sessions: an id is never given again.
CREATE TABLE tombstone (id TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE event (
  gid INTEGER PRIMARY KEY,
  sid INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  turn TEXT,
  actor TEXT NOT NULL,
  time INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  hash BLOB NOT NULL,
  bytes BLOB NOT NULL
);
CREATE UNIQUE INDEX event_order ON event (sid, seq);
-- The latch in the sequencer makes it so; this proves it.
CREATE UNIQUE INDEX event_terminal ON event (turn) WHERE type IN ('turn.completed', 'turn.cancelled');

CREATE TABLE turn (
  id TEXT PRIMARY KEY,
  sid INTEGER NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  on_disconnect TEXT NOT NULL,
  disconnect_grace_ms INTEGER NOT NULL,
  trace TEXT,
  started TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended TEXT,
  ended_at INTEGER,
  terminal_type TEXT,
  terminal TEXT
) WITHOUT ROWID;
CREATE INDEX turn_session ON turn (sid, id);
CREATE INDEX turn_open ON turn (id) WHERE ended IS NULL;

-- started and completed are event ids: their text order is stream order.
CREATE TABLE message (
  id TEXT PRIMARY KEY,
  sid INTEGER NOT NULL,
  turn TEXT NOT NULL,
  role TEXT NOT NULL,
  status TEXT NOT NULL,
  content TEXT NOT NULL,
  model TEXT,
  stop_reason TEXT,
  usage TEXT,
  metadata TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  completed_at INTEGER NOT NULL,
  started TEXT NOT NULL,
  completed TEXT NOT NULL,
  cuts BLOB NOT NULL,
  inputs TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX message_order ON message (sid, completed);

-- What a message in flight had grown by at each checkpoint; gone when the message is whole.
CREATE TABLE message_part (
  message TEXT NOT NULL,
  part INTEGER NOT NULL,
  sid INTEGER NOT NULL,
  turn TEXT NOT NULL,
  model TEXT NOT NULL,
  started TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  blocks TEXT NOT NULL,
  cuts BLOB NOT NULL,
  PRIMARY KEY (message, part)
) WITHOUT ROWID;
CREATE INDEX message_part_turn ON message_part (turn, part);

CREATE TABLE tool_call (
  id TEXT PRIMARY KEY,
  sid INTEGER NOT NULL,
  turn TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  started_at INTEGER,
  ended_at INTEGER
) WITHOUT ROWID;
CREATE INDEX tool_call_session ON tool_call (sid, id);
CREATE INDEX tool_call_turn ON tool_call (turn, id);
