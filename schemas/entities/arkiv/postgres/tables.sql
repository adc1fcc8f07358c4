-- Postgres: no unsigned integers, so numeric values are stored minus 2^63, which
-- keeps their order. Text compares by bytes.
-- One row for each string attribute of each version, the synthetic ones included.
CREATE TABLE string_attributes (
    entity_key BYTEA NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL
);

-- One row for each numeric attribute of each version, the synthetic ones included.
CREATE TABLE numeric_attributes (
    entity_key BYTEA NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value BIGINT NOT NULL
);

-- One row for each version, with its attributes once more as JSON objects.
CREATE TABLE payloads (
    entity_key BYTEA NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    payload BYTEA NOT NULL,
    content_type TEXT COLLATE "C" NOT NULL DEFAULT '',
    string_attributes TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    numeric_attributes TEXT COLLATE "C" NOT NULL DEFAULT '{}'
);

-- As compact keeps them.
ALTER TABLE payloads ALTER COLUMN payload SET STORAGE EXTERNAL;
