-- DuckDB: an ASOF join finds the page before a key without a join by inequality. The
-- rest is the common text.

-- name: find_pages
-- Pages of runs on which keys from one on and below another may lie.
SELECT p.run, p.low, p.body
FROM (
    SELECT v.run, COALESCE(f.low, '') AS lo, v.hi
    FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BLOB), CAST(? AS BLOB))}) AS v (run, lo, hi)
    ASOF LEFT JOIN postings AS f ON f.run = v.run AND f.low <= v.lo
) AS w
JOIN postings AS p ON p.run = w.run AND p.low >= w.lo AND p.low < w.hi
LIMIT CAST(? AS BIGINT);
