-- DuckDB: 64-bit integers are BIGINT; primary keys are ART indexes, so only what
-- is looked up by key has one.
-- How far the log is merged into the tables; one row.
CREATE TABLE progress (
    merged BIGINT NOT NULL,
    merging BIGINT NOT NULL,
    step BIGINT NOT NULL,
    last BIGINT NOT NULL,
    tip BLOB NOT NULL,
    next_id BIGINT NOT NULL,
    next_content BIGINT NOT NULL,
    names BIGINT NOT NULL,
    last_sequence UBIGINT NOT NULL,
    unordered BIGINT NOT NULL,
    backlog BIGINT NOT NULL,
    live BIGINT NOT NULL,
    runs BLOB NOT NULL
);

-- One row for each block with changes that are not merged yet. There is no index,
-- because with one a checkpoint keeps the rows that were deleted.
CREATE TABLE block_log (
    block BIGINT NOT NULL,
    tip BLOB NOT NULL,
    changes BLOB NOT NULL
);

-- Attribute names and content types by number.
CREATE TABLE names (
    id BIGINT PRIMARY KEY,
    kind BIGINT NOT NULL,
    name BLOB NOT NULL
);

-- Payloads by number, each once.
CREATE TABLE contents (
    no BIGINT PRIMARY KEY,
    content BLOB NOT NULL
);

-- The entities made under a key, by the key's hash.
CREATE TABLE entity_keys (
    hash BIGINT NOT NULL,
    id BIGINT NOT NULL,
    PRIMARY KEY (hash, id)
);

-- The last version of each entity that no operation has ended.
CREATE TABLE current_versions (
    id BIGINT PRIMARY KEY,
    from_block BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    entity_key BLOB NOT NULL,
    content BIGINT NOT NULL,
    data BLOB NOT NULL
);

-- All other versions.
CREATE TABLE closed_versions (
    id BIGINT NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    entity_key BLOB NOT NULL,
    content BIGINT NOT NULL,
    data BLOB NOT NULL
);

-- Who has a value, now or in the past: pages of sorted runs, by their lowest key.
CREATE TABLE postings (
    run BIGINT NOT NULL,
    low BLOB NOT NULL,
    body BLOB NOT NULL
);
