-- DuckDB: native unsigned integers. Primary keys are unique indexes (ART).
-- One row for each string attribute of each version, the synthetic ones included.
CREATE TABLE string_attributes (
    entity_key BLOB NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

-- One row for each numeric attribute of each version, the synthetic ones included.
CREATE TABLE numeric_attributes (
    entity_key BLOB NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    value UBIGINT NOT NULL
);

-- One row for each version, with its attributes once more as JSON objects.
CREATE TABLE payloads (
    entity_key BLOB NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    payload BLOB NOT NULL,
    content_type VARCHAR NOT NULL DEFAULT '',
    string_attributes VARCHAR NOT NULL DEFAULT '{}',
    numeric_attributes VARCHAR NOT NULL DEFAULT '{}'
);
