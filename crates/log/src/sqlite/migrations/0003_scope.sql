-- Who is shown a message: '' clients and the orchestrator, '-' the orchestrator, '*' every
-- sub-agent, else the sub-agent of that id. What a sub-agent notes beside the events shares the
-- place of the event before it, so places are no longer unique.
ALTER TABLE message ADD COLUMN scope TEXT NOT NULL DEFAULT '';
DROP INDEX message_order;
-- With the scope, so that what is for others is passed over without a look at its row.
CREATE INDEX message_order ON message (sid, completed, id, scope);

-- Hidden events are few: what a reader is not told is counted by them alone.
CREATE INDEX event_hidden ON event (sid, seq) WHERE hidden = 1;

-- How often each status was emitted on each day (UTC).
CREATE TABLE status_emissions (
  day TEXT NOT NULL,
  event_id TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (event_id, day)
) WITHOUT ROWID;
