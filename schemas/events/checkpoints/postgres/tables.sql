-- Postgres: text compares by bytes.
-- Up to which position each consumer has handled events. The table is made when the
-- first one writes a checkpoint; a store without it has none.
CREATE TABLE event_checkpoints (
    consumer TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);
