-- DuckDB: no clustered tables. Its indexes cannot look up a prefix of several
-- columns, so tags have an index of one (indexes.sql) and no primary key.
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

-- One row for each tag of each event, with the event's type, so that the table
-- alone answers a query with tags.
CREATE TABLE event_tags (
    tag VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    type VARCHAR NOT NULL
);

-- The events that have an ID.
CREATE TABLE event_ids (
    id BLOB NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);
