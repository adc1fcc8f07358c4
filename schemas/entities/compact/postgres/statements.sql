-- Postgres: payloads are joined to versions by a number that neither is spread by. Citus
-- takes a UNION ALL for one by any of its columns and looks for the payload among those
-- of the version's shard alone, without an error; OFFSET 0 makes it collect the versions.

-- name: openings
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data, p.content
FROM (
    SELECT id, from_block, expires AS to_block, expires, entity_key, content, data FROM current_versions
    UNION ALL
    SELECT id, from_block, to_block, expires, entity_key, content, data FROM closed_versions
    OFFSET 0
) AS v
LEFT JOIN contents AS p ON p.no = v.content
ORDER BY v.from_block, v.entity_key;

-- name: missing_contents
SELECT v.entity_key, v.from_block, v.content
FROM (
    SELECT entity_key, from_block, content FROM current_versions WHERE content > 0
    UNION ALL
    SELECT entity_key, from_block, content FROM closed_versions WHERE content > 0
    OFFSET 0
) AS v
LEFT JOIN contents AS p ON p.no = v.content
WHERE p.no IS NULL;

-- name: find_pages
-- Pages of runs on which keys from one on and below another may lie. OFFSET 0 keeps each
-- search apart: the planner takes what lies between two bounds that it does not know to be
-- little, but in a join it would look at them one by one and find a third of the run, and
-- with many searches rather read the whole table.
SELECT p.run, p.low, p.body
FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BYTEA))}) AS w (run, lo, hi)
CROSS JOIN LATERAL (
    SELECT COALESCE((
        SELECT f.low
        FROM postings AS f
        WHERE f.run = w.run AND f.low <= w.lo
        ORDER BY f.low DESC
        LIMIT 1
    ), '') AS low
    OFFSET 0
) AS first
CROSS JOIN LATERAL (
    SELECT q.run, q.low, q.body
    FROM postings AS q
    WHERE q.run = w.run AND q.low >= first.low AND q.low < w.hi
    OFFSET 0
) AS p
LIMIT CAST(? AS BIGINT);
