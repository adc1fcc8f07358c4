-- name: head
SELECT coalesce(max(position), 0) FROM events;

-- name: head_time
SELECT time FROM events ORDER BY position DESC LIMIT 1;

-- name: count_events
SELECT count(*) FROM events;

-- name: count_types
SELECT type, count(*) FROM events GROUP BY type ORDER BY type;
