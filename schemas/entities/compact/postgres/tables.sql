-- Postgres: 64-bit integers are BIGINT and blobs BYTEA; clustering is left to the
-- primary keys. last_sequence is stored minus 2^63, which keeps its order.
-- How far the log is merged into the tables; one row.
CREATE TABLE progress (
    merged BIGINT NOT NULL,
    merging BIGINT NOT NULL,
    step BIGINT NOT NULL,
    last BIGINT NOT NULL,
    tip BYTEA NOT NULL,
    next_id BIGINT NOT NULL,
    next_content BIGINT NOT NULL,
    names BIGINT NOT NULL,
    last_sequence BIGINT NOT NULL,
    unordered BIGINT NOT NULL,
    backlog BIGINT NOT NULL,
    live BIGINT NOT NULL,
    runs BYTEA NOT NULL
);

-- One row for each block with changes that are not merged yet.
CREATE TABLE block_log (
    block BIGINT PRIMARY KEY,
    tip BYTEA NOT NULL,
    changes BYTEA NOT NULL
);

-- Attribute names and content types by number.
CREATE TABLE names (
    id BIGINT PRIMARY KEY,
    kind BIGINT NOT NULL,
    name BYTEA NOT NULL
);

-- Payloads by number, each once.
CREATE TABLE contents (
    no BIGINT PRIMARY KEY,
    content BYTEA NOT NULL
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
    entity_key BYTEA NOT NULL,
    content BIGINT NOT NULL,
    data BYTEA NOT NULL
);

-- All other versions.
CREATE TABLE closed_versions (
    id BIGINT NOT NULL,
    from_block BIGINT NOT NULL,
    to_block BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    entity_key BYTEA NOT NULL,
    content BIGINT NOT NULL,
    data BYTEA NOT NULL
);

-- Who has a value, now or in the past: pages of sorted runs, by their lowest key.
CREATE TABLE postings (
    run BIGINT NOT NULL,
    low BYTEA NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (run, low)
);

-- Payloads and the log are kept as they come: to try whether pglz makes them smaller took a
-- quarter of the server's time, the log is short-lived, and sealed payloads have nothing to
-- give. Where payloads are long texts, SET STORAGE EXTENDED saves space.
ALTER TABLE contents ALTER COLUMN content SET STORAGE EXTERNAL;

ALTER TABLE block_log ALTER COLUMN changes SET STORAGE EXTERNAL;

-- No condition names these columns, and the planner needs nothing of them. To sort
-- their values was most of what autovacuum's ANALYZE did, every five seconds while
-- blocks come.
ALTER TABLE current_versions ALTER COLUMN entity_key SET STATISTICS 0;

ALTER TABLE current_versions ALTER COLUMN data SET STATISTICS 0;

ALTER TABLE closed_versions ALTER COLUMN entity_key SET STATISTICS 0;

ALTER TABLE closed_versions ALTER COLUMN data SET STATISTICS 0;

ALTER TABLE postings ALTER COLUMN body SET STATISTICS 0;
