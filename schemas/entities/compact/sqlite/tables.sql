-- SQLite, libSQL: tables that are looked up by their key are clustered by it
-- (WITHOUT ROWID); those with larger blobs have a row id. Large rows in a clustered tree
-- spill, and lie in its inner pages too: of these there was one for four others.
-- How far the log is merged into the tables; one row.
CREATE TABLE progress (
    merged INTEGER NOT NULL,
    merging INTEGER NOT NULL,
    step INTEGER NOT NULL,
    last INTEGER NOT NULL,
    tip BLOB NOT NULL,
    next_id INTEGER NOT NULL,
    next_content INTEGER NOT NULL,
    names INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    unordered INTEGER NOT NULL,
    backlog INTEGER NOT NULL,
    live INTEGER NOT NULL,
    runs BLOB NOT NULL
);

-- One row for each block with changes that are not merged yet.
CREATE TABLE block_log (
    block INTEGER PRIMARY KEY,
    tip BLOB NOT NULL,
    changes BLOB NOT NULL
);

-- Attribute names and content types by number.
CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name BLOB NOT NULL
);

-- Payloads by number, each once.
CREATE TABLE contents (
    no INTEGER PRIMARY KEY,
    content BLOB NOT NULL
);

-- The entities made under a key, by the key's hash.
CREATE TABLE entity_keys (
    hash INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (hash, id)
) WITHOUT ROWID;

-- The last version of each entity that no operation has ended.
CREATE TABLE current_versions (
    id INTEGER PRIMARY KEY,
    from_block INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    entity_key BLOB NOT NULL,
    content INTEGER NOT NULL,
    data BLOB NOT NULL
);

-- All other versions.
CREATE TABLE closed_versions (
    id INTEGER NOT NULL,
    from_block INTEGER NOT NULL,
    to_block INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    entity_key BLOB NOT NULL,
    content INTEGER NOT NULL,
    data BLOB NOT NULL
);

-- Who has a value, now or in the past: pages of sorted runs, by their lowest key.
CREATE TABLE postings (
    run INTEGER NOT NULL,
    low BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, low)
);
