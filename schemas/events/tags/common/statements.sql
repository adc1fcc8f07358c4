-- The last event, up to where the postings are written, and the end of the batch that
-- is being written.
-- name: state
SELECT position, time, (SELECT min(position) FROM event_index) AS indexed,
    (SELECT max(position) FROM event_index) AS batch
FROM events
ORDER BY events.position DESC
LIMIT 1;

-- name: head
SELECT coalesce(max(position), 0) FROM events;

-- name: insert_index
INSERT INTO event_index (position) VALUES (?);

-- name: update_index
UPDATE event_index SET position = ?;

-- The second row is the only one then.
-- name: end_batch
DELETE FROM event_index WHERE position < ?;

-- name: count_postings
SELECT count(*) FROM event_postings WHERE term = ? AND position = ?;

-- What stands in braces is repeated as often as there are IDs.
-- name: find_ids
SELECT id, position FROM event_ids WHERE id IN ({?});

-- name: count_types
SELECT type, count(*) FROM events GROUP BY type ORDER BY type;

-- name: first_above
SELECT position FROM events WHERE position > ? ORDER BY position LIMIT 1;

-- Halves the positions between which the first event lies that is not before a time:
-- there is no index of times, since they never fall.
-- name: first_since
WITH RECURSIVE step (low, high, wanted) AS (
    SELECT CAST(0 AS BIGINT), coalesce(max(position), 0) + 1, CAST(? AS BIGINT)
    FROM events
    UNION ALL
    SELECT CASE WHEN events.time >= wanted THEN low ELSE (low + high) / 2 END,
        CASE WHEN events.time >= wanted THEN (low + high) / 2 ELSE high END, wanted
    FROM step
    LEFT JOIN events ON events.position = (low + high) / 2
    WHERE high - low > 1
)
SELECT position FROM events WHERE position = (SELECT min(high) FROM step);
