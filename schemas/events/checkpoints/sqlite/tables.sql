-- SQLite: a table WITHOUT ROWID is clustered by its primary key.
-- Up to which position each consumer has handled events. The table is made when the
-- first one writes a checkpoint; a store without it has none.
CREATE TABLE event_checkpoints (
    consumer TEXT NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;
