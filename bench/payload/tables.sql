-- An entity with a few numbers. The payload is empty where another place has it.
CREATE TABLE entities (
    entity_key BLOB PRIMARY KEY,
    block BIGINT NOT NULL,
    n0 BIGINT NOT NULL,
    n1 BIGINT NOT NULL,
    n2 BIGINT NOT NULL,
    n3 BIGINT NOT NULL,
    n4 BIGINT NOT NULL,
    n5 BIGINT NOT NULL,
    n6 BIGINT NOT NULL,
    n7 BIGINT NOT NULL,
    place BIGINT NOT NULL,
    payload BLOB NOT NULL
);

-- Payloads in a table of their own.
CREATE TABLE payloads (
    entity_key BLOB PRIMARY KEY,
    payload BLOB NOT NULL
);
