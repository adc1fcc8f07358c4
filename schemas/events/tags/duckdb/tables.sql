-- DuckDB: no clustered tables. Its indexes cannot look up a prefix of several
-- columns, so terms have an index of one (indexes.sql) and no primary key.
-- One row for each event. Tags are all of its tags, for reading it back.
CREATE TABLE events (
    position BIGINT NOT NULL PRIMARY KEY,
    type VARCHAR NOT NULL,
    time BIGINT NOT NULL,
    id BLOB NOT NULL,
    tags VARCHAR NOT NULL,
    data BLOB NOT NULL,
    metadata BLOB NOT NULL
);

-- The postings of a tag, or of a type behind an equals sign, which begins no tag:
-- a row holds the positions of up to 256 events, packed, with their types. The
-- rows of a term do not overlap.
CREATE TABLE event_postings (
    term VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    list BLOB NOT NULL
);

-- The events that have an ID.
CREATE TABLE event_ids (
    id BLOB NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);

-- The position up to which event_postings and event_ids are complete. They are written
-- for many events together, a batch. While one is written by several commits, a second
-- row is its end.
CREATE TABLE event_index (
    position BIGINT NOT NULL
);
