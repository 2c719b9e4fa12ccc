-- What a message's provider wants back with it, as JSON; NULL for nearly all.
ALTER TABLE message ADD COLUMN kept TEXT;

-- Where the session was told of another routing policy: turns that began before choose by an older one.
ALTER TABLE session ADD COLUMN policy_at TEXT;

-- Model calls: those of a turn are several, each with its provider's own id.
CREATE TABLE llm_call (
  id TEXT PRIMARY KEY,
  sid INTEGER NOT NULL,
  turn TEXT NOT NULL,
  actor TEXT NOT NULL,
  model TEXT NOT NULL,
  purpose TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL,
  error_class TEXT,
  stop_reason TEXT,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  total_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  cost_usd REAL NOT NULL DEFAULT 0,
  provider_response_id TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
) WITHOUT ROWID;
CREATE INDEX llm_call_session ON llm_call (sid, id);

-- What the calls of each day (UTC) came to; it stays when their sessions go.
CREATE TABLE usage_day (
  day TEXT NOT NULL,
  tenant TEXT NOT NULL,
  model TEXT NOT NULL,
  calls INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  PRIMARY KEY (tenant, day, model)
) WITHOUT ROWID;
