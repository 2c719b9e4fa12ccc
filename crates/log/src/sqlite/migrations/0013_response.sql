-- The id that the upstream of a relayed turn gave to its response.
ALTER TABLE turn ADD COLUMN response_id TEXT;
CREATE INDEX turn_response ON turn (response_id) WHERE response_id IS NOT NULL;
