-- Tags as an array in the event's own row, as go-crablet has them. Only Postgres
-- indexes the elements of an array.
-- One row for each event. Tags are separated by U+001F.
CREATE TABLE events (
    position BIGINT NOT NULL PRIMARY KEY,
    type TEXT COLLATE "C" NOT NULL,
    time BIGINT NOT NULL,
    id BYTEA NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    data BYTEA NOT NULL,
    metadata BYTEA NOT NULL,
    tag_array TEXT[] COLLATE "C" NOT NULL GENERATED ALWAYS AS (string_to_array(tags, chr(31))) STORED
);

-- The events that have an ID.
CREATE TABLE event_ids (
    id BYTEA NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);
