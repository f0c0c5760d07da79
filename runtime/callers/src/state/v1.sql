CREATE TABLE tokens (
    id TEXT PRIMARY KEY NOT NULL,
    token TEXT NOT NULL,
    made_ms INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    used_ms INTEGER,
    revoked_ms INTEGER
) STRICT;
CREATE TABLE people (
    email TEXT PRIMARY KEY NOT NULL,
    attributes TEXT NOT NULL,
    seen_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE answers (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    call BLOB NOT NULL,
    begun_ms INTEGER NOT NULL,
    status INTEGER,
    headers TEXT,
    body BLOB,
    PRIMARY KEY (principal, key)
) STRICT;
CREATE INDEX answers_begun ON answers (begun_ms);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    entry TEXT NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at_ms);
