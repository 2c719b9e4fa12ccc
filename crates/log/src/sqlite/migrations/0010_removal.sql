-- The removal of a deleted session finds the rows of these tables by session too.
CREATE INDEX message_part_session ON message_part (sid);
CREATE INDEX approval_session ON approval (sid);
