-- The time of each session's oldest event, oldest first: a sweep of the retention reads the sessions
-- that are due and no others. Written with a session's first event and by the sweep; a row may
-- outlive its session.
CREATE TABLE session_age (
  oldest INTEGER NOT NULL,
  sid INTEGER NOT NULL,
  PRIMARY KEY (oldest, sid)
) WITHOUT ROWID;
INSERT INTO session_age
  SELECT oldest, sid FROM (
    SELECT s.sid AS sid,
      (SELECT e.time FROM event e WHERE e.sid = s.sid ORDER BY e.seq LIMIT 1) AS oldest
    FROM session s
  ) WHERE oldest IS NOT NULL;

-- Deleted sessions whose rows are still to be removed.
CREATE TABLE removal (sid INTEGER PRIMARY KEY);

-- By session, so that one lookup tells whether a session has an open turn.
DROP INDEX turn_open;
CREATE INDEX turn_open ON turn (sid, id) WHERE ended IS NULL;
