-- Calls that were stopped are not failed ones, and have a usage too, which may be an estimate.
ALTER TABLE llm_call ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_day ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_day ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
