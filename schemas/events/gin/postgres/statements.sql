-- The last event, and up to where the postings are written: everything.
-- name: state
SELECT position, time, position AS indexed
FROM events
ORDER BY events.position DESC
LIMIT 1;

-- name: head
SELECT coalesce(max(position), 0) FROM events;

-- name: count_events
SELECT count(*) FROM events;

-- name: count_types
SELECT type, count(*) FROM events GROUP BY type ORDER BY type;

-- name: first_above
SELECT position FROM events WHERE position > ? ORDER BY position LIMIT 1;
