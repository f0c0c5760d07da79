CREATE TABLE sessions (
    digest TEXT PRIMARY KEY NOT NULL,
    claims TEXT NOT NULL,
    ends_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_ends ON sessions (ends_ms);
