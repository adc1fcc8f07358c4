-- Postgres: no unsigned integers, so numeric values are stored minus 2^63, which
-- keeps their order. Text compares by bytes.
-- One row for each string attribute of each entity, the synthetic ones included.
CREATE TABLE string_attributes (
    entity_key BYTEA NOT NULL,
    block BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL
);

-- One row for each numeric attribute of each entity, the synthetic ones included.
CREATE TABLE numeric_attributes (
    entity_key BYTEA NOT NULL,
    block BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value BIGINT NOT NULL
);

-- One row for each entity. The seed's schema has no lifetime; expires is there
-- so that an expired entity is not returned, and is in no index.
CREATE TABLE payloads (
    entity_key BYTEA NOT NULL,
    block BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    payload BYTEA NOT NULL,
    content_type TEXT COLLATE "C" NOT NULL DEFAULT '',
    string_attributes TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    numeric_attributes TEXT COLLATE "C" NOT NULL DEFAULT '{}'
);

-- As compact keeps them.
ALTER TABLE payloads ALTER COLUMN payload SET STORAGE EXTERNAL;
