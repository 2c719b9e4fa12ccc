-- The id that the upstream of a relayed turn gave to its response, with the owner, in whom alone it is
-- looked up: others may have as many responses of the same id as they like.
ALTER TABLE turn ADD COLUMN response_id TEXT;
ALTER TABLE turn ADD COLUMN response_owner TEXT;
CREATE INDEX turn_response ON turn (response_owner, response_id) WHERE response_id IS NOT NULL;
