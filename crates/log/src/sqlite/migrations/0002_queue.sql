-- A turn keeps the wire version it was submitted with and the definition it was bound to.
-- While it waits, `queued` holds what is needed to start it, and the lowest place is next.
ALTER TABLE turn ADD COLUMN wire_version TEXT;
ALTER TABLE turn ADD COLUMN agent_definition TEXT NOT NULL DEFAULT '';
ALTER TABLE turn ADD COLUMN queued TEXT;
ALTER TABLE turn ADD COLUMN queue_place INTEGER;
CREATE INDEX turn_queued ON turn (sid, queue_place) WHERE state = 'queued';

-- Keys of submits that were accepted. `session` is empty where the submit made the session, so
-- `sid` says whose rows they are.
CREATE TABLE idempotency (
  tenant TEXT NOT NULL,
  principal TEXT NOT NULL,
  route TEXT NOT NULL,
  session TEXT NOT NULL,
  key TEXT NOT NULL,
  turn TEXT NOT NULL,
  body_sha256 BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  sid INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal, route, session, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);
CREATE INDEX idempotency_session ON idempotency (sid);
