-- DuckDB: an ASOF join finds the page before a key without a join by inequality, and keys
-- have no index that could refuse one twice. The rest is the common text.

-- An inner join hands the bounds of its hashes on to the scan, as NOT EXISTS would not.
-- name: insert_missing_keys
WITH v (hash, id) AS (VALUES {(CAST(? AS BIGINT), CAST(? AS BIGINT))})
INSERT INTO entity_keys (hash, id)
SELECT hash, id FROM v
EXCEPT
SELECT k.hash, k.id
FROM v
JOIN entity_keys AS k ON k.hash = v.hash AND k.id = v.id;

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
