-- SQLite, libSQL: a list of VALUES has no column names of its own choosing, and
-- CROSS JOIN keeps it the outer loop. The rest is the common text.

-- name: openings
-- Sorted without what is long, because a sort writes what it holds into a temporary
-- file: 50 bytes a version, where data and payloads are 6 KB. Both are fetched in the
-- order of the outer loop. Old is the row of a closed version.
SELECT v.id, v.from_block, COALESCE(h.to_block, c.expires, 0), COALESCE(h.expires, c.expires, 0), v.entity_key,
    COALESCE(h.content, c.content, 0), COALESCE(h.data, c.data), p.content
FROM (
    SELECT id, from_block, entity_key, NULL AS old FROM current_versions
    UNION ALL
    SELECT id, from_block, entity_key, rowid FROM closed_versions
    ORDER BY from_block, entity_key
    LIMIT -1
) AS v
LEFT JOIN closed_versions AS h ON h.rowid = v.old
LEFT JOIN current_versions AS c ON c.id = CASE WHEN v.old IS NULL THEN v.id END
LEFT JOIN contents AS p ON p.no = COALESCE(h.content, c.content);

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
