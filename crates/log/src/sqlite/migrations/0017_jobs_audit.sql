-- What schedulers name when they start turns. A job is known from its first turn on, and forgotten with
-- the audit of its last one, unless it is paused.
CREATE TABLE job (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  paused_at INTEGER,
  paused_by TEXT,
  fired_at INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
CREATE INDEX job_creator ON job (tenant, created_by);
CREATE INDEX job_fired ON job (fired_at) WHERE paused_at IS NULL;

-- Acts that somebody may have to account for: who did what when, with ids and without content. The rows
-- of a deleted session stay.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again
  at INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  action TEXT NOT NULL,
  actor TEXT NOT NULL,
  acted_for TEXT,
  session TEXT,
  turn TEXT,
  approval TEXT,
  job TEXT,
  outcome TEXT,
  request BLOB
);
CREATE INDEX audit_order ON audit (tenant, at, id);
CREATE INDEX audit_age ON audit (at);
-- The deletion of a session is recorded once, however often it is begun.
CREATE UNIQUE INDEX audit_deletion ON audit (session) WHERE action = 'session_deleted';
-- A request that was skipped is recorded once, however often it is sent.
CREATE INDEX audit_request ON audit (request) WHERE request IS NOT NULL;
