-- The sessions whose deletion was announced: a start finds those that the last run did not delete.
CREATE INDEX event_closed ON event (sid, seq) WHERE type = 'session.closed';
