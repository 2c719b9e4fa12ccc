-- Checkpoints of messages in flight in one tree instead of three: every part of every message that
-- streams is written four times a second.
CREATE TABLE message_part_of_session (
  sid INTEGER NOT NULL,
  turn TEXT NOT NULL,
  message TEXT NOT NULL,
  part INTEGER NOT NULL,
  model TEXT NOT NULL,
  started TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  blocks TEXT NOT NULL,
  cuts BLOB NOT NULL,
  PRIMARY KEY (sid, turn, message, part)
) WITHOUT ROWID;
INSERT INTO message_part_of_session
  SELECT sid, turn, message, part, model, started, started_at, blocks, cuts FROM message_part;
DROP TABLE message_part;
ALTER TABLE message_part_of_session RENAME TO message_part;
