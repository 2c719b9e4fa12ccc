-- What the calls of each principal came to on each day (UTC), for daily quotas. Days before yesterday
-- are removed.
CREATE TABLE usage_principal (
  day TEXT NOT NULL,
  tenant TEXT NOT NULL,
  principal TEXT NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  PRIMARY KEY (day, tenant, principal)
) WITHOUT ROWID;
