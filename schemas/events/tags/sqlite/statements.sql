-- SQLite: text is read as a blob, so that no driver interprets it.
-- name: count_types
SELECT CAST(type AS BLOB), count(*) FROM events GROUP BY type ORDER BY type;
