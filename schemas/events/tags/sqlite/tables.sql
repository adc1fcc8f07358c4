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

-- The postings of a tag, or of a type behind an equals sign, which begins no tag:
-- a row holds the positions of up to 256 events, packed, with their types. The
-- rows of a term do not overlap.
CREATE TABLE event_postings (
    term TEXT NOT NULL,
    position INTEGER NOT NULL,
    list BLOB NOT NULL,
    PRIMARY KEY (term, position)
) WITHOUT ROWID;

-- The events that have an ID.
CREATE TABLE event_ids (
    id BLOB NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;

-- The position up to which event_postings and event_ids are complete. They are written
-- for many events together, a batch. While one is written by several commits, a second
-- row is its end.
CREATE TABLE event_index (
    position INTEGER NOT NULL
);
