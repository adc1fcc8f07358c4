-- DuckDB: a scan of one column is faster than halving, which it cannot correlate.
-- name: first_since
SELECT coalesce(min(position), 0) FROM events WHERE time >= ?;
