-- The agent that answers in a session, where it is not the pack's orchestrator: a worker's.
ALTER TABLE session ADD COLUMN agent TEXT;
CREATE INDEX session_parent ON session (parent, id) WHERE parent IS NOT NULL;

-- Questions whether a tool may act. They outlive the turn that asked.
CREATE TABLE approval (
  id TEXT PRIMARY KEY,
  sid INTEGER NOT NULL,
  turn TEXT NOT NULL,
  tool_use TEXT NOT NULL,
  name TEXT NOT NULL,
  input_summary TEXT NOT NULL,
  state TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  resolved_at INTEGER,
  resolved_by TEXT,
  comment TEXT
) WITHOUT ROWID;
CREATE INDEX approval_turn ON approval (turn, id);
CREATE INDEX approval_open ON approval (sid, id) WHERE state = 'pending';

-- The paused turn that a turn goes on with: one turn at most goes on with another.
ALTER TABLE turn ADD COLUMN resumes TEXT;
CREATE UNIQUE INDEX turn_resumes ON turn (resumes) WHERE resumes IS NOT NULL;
