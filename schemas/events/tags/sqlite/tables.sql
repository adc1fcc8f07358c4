-- SQLite: tables WITHOUT ROWID are clustered by their primary key. Events lie in
-- a table with row ids, since long blobs in a clustered one spill.
-- One row for each event. Tags are all of its tags, for reading it back.
CREATE TABLE events (
    position INTEGER NOT NULL PRIMARY KEY,
    type TEXT NOT NULL,
    time INTEGER NOT NULL,
    id BLOB NOT NULL,
    tags TEXT NOT NULL,
    data BLOB NOT NULL,
    metadata BLOB NOT NULL
);

-- One row for each tag of each event, with the event's type, so that the table
-- alone answers a query with tags.
CREATE TABLE event_tags (
    tag TEXT NOT NULL,
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (tag, position)
) WITHOUT ROWID;

-- The events that have an ID.
CREATE TABLE event_ids (
    id BLOB NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;
