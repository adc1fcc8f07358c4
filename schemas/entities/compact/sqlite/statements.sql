-- SQLite, libSQL: a list of VALUES has no column names of its own choosing, and
-- CROSS JOIN keeps it the outer loop. The rest is the common text.

-- name: openings
-- Sorted without payloads, because a sort writes what it holds into a temporary file:
-- 242 MB for 240 MB of payloads. They are fetched in the order of the outer loop.
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data, p.content
FROM (
    SELECT id, from_block, expires AS to_block, expires, entity_key, content, data FROM current_versions
    UNION ALL
    SELECT id, from_block, to_block, expires, entity_key, content, data FROM closed_versions
    ORDER BY from_block, entity_key
    LIMIT -1
) AS v
LEFT JOIN contents AS p ON p.no = v.content;

-- name: find_pages
-- Pages of runs on which keys from one on and below another may lie.
SELECT p.run, p.low, p.body
FROM (VALUES {(?, ?, ?)}) AS w
CROSS JOIN postings AS p ON p.run = w.column1
    AND p.low >= COALESCE((
        SELECT f.low
        FROM postings AS f
        WHERE f.run = w.column1 AND f.low <= w.column2
        ORDER BY f.low DESC
        LIMIT 1
    ), x'')
    AND p.low < w.column3
LIMIT +?;
