-- Postgres: no clustered tables; the primary key finds the rows of a term in
-- order. Text compares by bytes.
-- One row for each event. Tags are all of its tags, for reading it back.
CREATE TABLE events (
    position BIGINT NOT NULL PRIMARY KEY,
    type TEXT COLLATE "C" NOT NULL,
    time BIGINT NOT NULL,
    id BYTEA NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    data BYTEA NOT NULL,
    metadata BYTEA NOT NULL
);

-- The postings of a tag, or of a type behind an equals sign, which begins no tag:
-- a row holds the positions of up to 256 events, packed, with their types. The
-- rows of a term do not overlap.
CREATE TABLE event_postings (
    term TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    list BYTEA NOT NULL,
    PRIMARY KEY (term, position)
);

-- The events that have an ID.
CREATE TABLE event_ids (
    id BYTEA NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);

-- The position up to which event_postings and event_ids are complete. They are written
-- for many events together, a batch. While one is written by several commits, a second
-- row is its end.
CREATE TABLE event_index (
    position BIGINT NOT NULL
);
