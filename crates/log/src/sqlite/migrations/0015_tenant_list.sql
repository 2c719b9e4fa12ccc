-- Sessions of a tenant, newest first, for readers with the scope tenant:read.
CREATE INDEX session_tenant ON session (tenant, id) WHERE parent IS NULL;
