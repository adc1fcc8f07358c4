-- What stands in braces is repeated as often as there are values.

-- name: progress
SELECT merged, merging, step, last, tip, next_id, next_content, names, last_sequence, unordered, backlog, live, runs
FROM progress;

-- name: set_progress
UPDATE progress
SET merged = ?, merging = ?, step = ?, last = ?, tip = ?, next_id = ?, next_content = ?, names = ?,
    last_sequence = ?, unordered = ?, backlog = ?, live = ?, runs = ?;

-- name: log
SELECT block, tip, changes
FROM block_log
WHERE block > ?
ORDER BY block;

-- name: trim_log
DELETE FROM block_log WHERE block <= ?;

-- name: names
SELECT id, kind, name
FROM names
WHERE id > ?
ORDER BY id;

-- name: current_by_key
SELECT c.id, c.from_block, c.expires, c.entity_key, c.content, c.data
FROM entity_keys AS k
JOIN current_versions AS c ON c.id = k.id
WHERE k.hash IN ({?});

-- name: closed_by_key
SELECT v.id, v.from_block, v.expires, v.entity_key, v.content, v.data, v.to_block
FROM entity_keys AS k
JOIN closed_versions AS v ON v.id = k.id
WHERE k.hash IN ({?});

-- name: current_by_id
SELECT id, from_block, expires, entity_key, content, data
FROM current_versions
WHERE id IN ({?});

-- name: closed_by_id
SELECT id, from_block, expires, entity_key, content, data, to_block
FROM closed_versions
WHERE id IN ({?});

-- name: closed_by_id_at
SELECT id, from_block, expires, entity_key, content, data, to_block
FROM closed_versions
WHERE id IN ({?}) AND from_block <= ? AND to_block > ?;

-- name: scan_current
SELECT id, from_block, expires, entity_key, content, data
FROM current_versions
WHERE id < ?
ORDER BY id DESC
LIMIT CAST(? AS BIGINT);

-- name: scan_closed_at
SELECT id, from_block, expires, entity_key, content, data, to_block
FROM closed_versions
WHERE id < ? AND from_block <= ? AND to_block > ?
ORDER BY id DESC
LIMIT CAST(? AS BIGINT);

-- name: scan_closed
SELECT id, from_block, expires, entity_key, content, data, to_block
FROM closed_versions
WHERE id > ?
ORDER BY id
LIMIT CAST(? AS BIGINT);

-- name: scan_current_above
-- Versions that begin after a block, in pages by id.
SELECT id, from_block, expires, entity_key, content, data
FROM current_versions
WHERE id > ? AND from_block > ?
ORDER BY id
LIMIT CAST(? AS BIGINT);

-- name: scan_current_expired
SELECT id, from_block, expires, entity_key, content, data
FROM current_versions
WHERE id > ? AND expires <= ?
ORDER BY id
LIMIT CAST(? AS BIGINT);

-- name: scan_closed_above
-- Versions that begin or end after a block, in pages by id.
SELECT id, from_block, expires, entity_key, content, data, to_block
FROM closed_versions
WHERE id > ? AND (to_block > ? OR from_block > ?)
ORDER BY id, from_block
LIMIT CAST(? AS BIGINT);

-- name: scan_closed_before
-- Versions that end at or before a block, in pages by id.
SELECT id, from_block, expires, entity_key, content, data, to_block
FROM closed_versions
WHERE id > ? AND to_block <= ?
ORDER BY id, from_block
LIMIT CAST(? AS BIGINT);

-- name: delete_current
DELETE FROM current_versions WHERE id IN ({?});

-- name: delete_closed
DELETE FROM closed_versions WHERE id = ? AND from_block = ?;

-- name: delete_key
DELETE FROM entity_keys WHERE hash = ? AND id = ?;

-- name: delete_contents
DELETE FROM contents WHERE no IN ({?});

-- name: contents
SELECT no, content
FROM contents
WHERE no IN ({?});

-- name: insert_keys
INSERT INTO entity_keys (hash, id)
VALUES {(?, ?)}
ON CONFLICT DO NOTHING;

-- name: current_pages
-- Pages of runs on which keys from one on and below another may lie.
SELECT p.run, p.low, p.body
FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BYTEA))}) AS w (run, lo, hi)
JOIN current_postings AS p ON p.run = w.run
WHERE p.low >= COALESCE((
        SELECT f.low
        FROM current_postings AS f
        WHERE f.run = w.run AND f.low <= w.lo
        ORDER BY f.low DESC
        LIMIT 1
    ), '')
    AND p.low < w.hi
LIMIT CAST(? AS BIGINT);

-- name: current_run
SELECT low, body
FROM current_postings
WHERE run = ? AND low >= ?
ORDER BY low
LIMIT CAST(? AS BIGINT);

-- name: current_run_start
-- The page on which a key may lie.
SELECT low
FROM current_postings
WHERE run = ? AND low <= ?
ORDER BY low DESC
LIMIT 1;

-- name: current_run_bound
-- The page before which a number of pages lie, from one on.
SELECT low
FROM current_postings
WHERE run = ? AND low >= ?
ORDER BY low
LIMIT 1 OFFSET CAST(? AS BIGINT);

-- name: current_runs
SELECT run, count(*)
FROM current_postings
GROUP BY run;

-- name: drop_current_pages
DELETE FROM current_postings WHERE run = ? AND low >= ? AND low < ?;

-- name: drop_current_run
DELETE FROM current_postings WHERE run = ? AND low >= ?;

-- name: past_pages
-- Pages of runs on which keys from one on and below another may lie.
SELECT p.run, p.low, p.body
FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BYTEA))}) AS w (run, lo, hi)
JOIN past_postings AS p ON p.run = w.run
WHERE p.low >= COALESCE((
        SELECT f.low
        FROM past_postings AS f
        WHERE f.run = w.run AND f.low <= w.lo
        ORDER BY f.low DESC
        LIMIT 1
    ), '')
    AND p.low < w.hi
LIMIT CAST(? AS BIGINT);

-- name: past_run
SELECT low, body
FROM past_postings
WHERE run = ? AND low >= ?
ORDER BY low
LIMIT CAST(? AS BIGINT);

-- name: past_run_start
-- The page on which a key may lie.
SELECT low
FROM past_postings
WHERE run = ? AND low <= ?
ORDER BY low DESC
LIMIT 1;

-- name: past_run_bound
-- The page before which a number of pages lie, from one on.
SELECT low
FROM past_postings
WHERE run = ? AND low >= ?
ORDER BY low
LIMIT 1 OFFSET CAST(? AS BIGINT);

-- name: past_runs
SELECT run, count(*)
FROM past_postings
GROUP BY run;

-- name: drop_past_pages
DELETE FROM past_postings WHERE run = ? AND low >= ? AND low < ?;

-- name: drop_past_run
DELETE FROM past_postings WHERE run = ? AND low >= ?;

-- name: count_current
SELECT count(*) FROM current_versions;

-- name: count_closed
SELECT count(*) FROM closed_versions;

-- name: openings
SELECT v.id, v.from_block, v.expires, v.entity_key, v.content, v.data, p.content
FROM (
    SELECT id, from_block, expires, entity_key, content, data FROM current_versions
    UNION ALL
    SELECT id, from_block, expires, entity_key, content, data FROM closed_versions
) AS v
LEFT JOIN contents AS p ON p.no = v.content
ORDER BY v.from_block, v.entity_key;

-- name: closings
SELECT to_block, entity_key, from_block
FROM closed_versions
WHERE to_block < expires
ORDER BY to_block, entity_key;

-- name: missing_contents
SELECT v.entity_key, v.from_block, v.content
FROM (
    SELECT entity_key, from_block, content FROM current_versions WHERE content > 0
    UNION ALL
    SELECT entity_key, from_block, content FROM closed_versions WHERE content > 0
) AS v
LEFT JOIN contents AS p ON p.no = v.content
WHERE p.no IS NULL;

-- name: key_hashes
-- Every version's key beside the hash that leads to it, where there is one.
SELECT v.entity_key, v.id, k.hash IS NOT NULL AS has, COALESCE(k.hash, 0)
FROM (
    SELECT entity_key, id FROM current_versions
    UNION
    SELECT entity_key, id FROM closed_versions
) AS v
LEFT JOIN entity_keys AS k ON k.id = v.id;

-- name: intervals
-- Every version by key, as far as the tables have it.
SELECT entity_key, id, from_block, to_block, expires
FROM (
    SELECT entity_key, id, from_block, expires AS to_block, expires FROM current_versions
    UNION ALL
    SELECT entity_key, id, from_block, to_block, expires FROM closed_versions
) AS v
ORDER BY entity_key, from_block;

-- name: highest_content
SELECT COALESCE(max(v.content), 0)
FROM (
    SELECT content FROM current_versions
    UNION ALL
    SELECT content FROM closed_versions
) AS v;

-- name: drop_contents
DELETE FROM contents WHERE no > ?;

-- name: ids_by_key
SELECT id FROM entity_keys WHERE hash IN ({?});

-- name: existing
SELECT id FROM current_versions WHERE id IN ({?});

-- name: highest_block
-- The last block, up to one, that a version began or was ended at.
SELECT COALESCE(max(v.block), -1)
FROM (
    SELECT from_block AS block FROM current_versions
    UNION ALL
    SELECT from_block FROM closed_versions
    UNION ALL
    SELECT to_block FROM closed_versions WHERE to_block < expires
) AS v
WHERE v.block <= ?;

-- name: highest_numbers
SELECT
    (SELECT COALESCE(max(v.id), 0) FROM (SELECT max(id) AS id FROM current_versions UNION ALL SELECT max(id) FROM closed_versions) AS v),
    (SELECT COALESCE(max(no), 0) FROM contents),
    (SELECT COALESCE(max(id), 0) FROM names);
