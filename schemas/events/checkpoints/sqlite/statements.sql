-- SQLite: text is read as a blob, so that no driver interprets it.
-- name: list
SELECT CAST(consumer AS BLOB), position FROM event_checkpoints ORDER BY consumer;
