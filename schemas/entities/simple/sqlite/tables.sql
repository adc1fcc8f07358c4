-- SQLite: a value above 2^63-1 is stored as an 8-byte BLOB, which sorts after
-- every integer. Primary keys are unique indexes, as SQLite makes them itself.
-- One row for each string attribute of each entity, the synthetic ones included.
CREATE TABLE string_attributes (
    entity_key BLOB NOT NULL,
    block INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL
);

-- One row for each numeric attribute of each entity, the synthetic ones included.
CREATE TABLE numeric_attributes (
    entity_key BLOB NOT NULL,
    block INTEGER NOT NULL,
    key TEXT NOT NULL,
    value INTEGER NOT NULL
);

-- One row for each entity. The seed's schema has no lifetime; expires is there
-- so that an expired entity is not returned, and is in no index.
CREATE TABLE payloads (
    entity_key BLOB NOT NULL,
    block INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    payload BLOB NOT NULL,
    content_type TEXT NOT NULL DEFAULT '',
    string_attributes TEXT NOT NULL DEFAULT '{}',
    numeric_attributes TEXT NOT NULL DEFAULT '{}'
);
