-- Where the bytes of an event leave out the content of a message, and of which: a large content is
-- stored once, with its message.
ALTER TABLE event ADD COLUMN content_at INTEGER;
ALTER TABLE event ADD COLUMN content_of TEXT;
