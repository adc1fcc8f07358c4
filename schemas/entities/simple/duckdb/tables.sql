-- DuckDB: native unsigned integers. Primary keys are unique indexes (ART).
-- One row for each string attribute of each entity, the synthetic ones included.
CREATE TABLE string_attributes (
    entity_key BLOB NOT NULL,
    block BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

-- One row for each numeric attribute of each entity, the synthetic ones included.
CREATE TABLE numeric_attributes (
    entity_key BLOB NOT NULL,
    block BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    value UBIGINT NOT NULL
);

-- One row for each entity. The seed's schema has no lifetime; expires is there
-- so that an expired entity is not returned, and is in no index.
CREATE TABLE payloads (
    entity_key BLOB NOT NULL,
    block BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    payload BLOB NOT NULL,
    content_type VARCHAR NOT NULL DEFAULT '',
    string_attributes VARCHAR NOT NULL DEFAULT '{}',
    numeric_attributes VARCHAR NOT NULL DEFAULT '{}'
);
