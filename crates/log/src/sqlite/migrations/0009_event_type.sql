-- Events by type: a read of a rare type looks at the events of that type only.
CREATE INDEX event_type ON event (sid, type, seq);
