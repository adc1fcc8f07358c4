-- SQLite, libSQL: a list of VALUES has no column names of its own choosing, and
-- CROSS JOIN keeps it the outer loop. The rest is the common text.

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
