-- Postgres: no clustered tables; the primary key of the tags carries the type, so
-- that the index alone answers a query with tags. Text compares by bytes.
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

-- One row for each tag of each event, with the event's type.
CREATE TABLE event_tags (
    tag TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tag, position) INCLUDE (type)
);

-- The events that have an ID.
CREATE TABLE event_ids (
    id BYTEA NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);
