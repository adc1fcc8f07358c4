-- What stands in braces is repeated as often as there are values. A version's columns are
-- the same everywhere; 0 is the end of a current one, which ends when it expires.

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

-- name: drop_log
DELETE FROM block_log WHERE block > ?;

-- name: names
SELECT id, kind, name
FROM names
WHERE id > ?
ORDER BY id;

-- name: ids_by_key
SELECT id FROM entity_keys WHERE hash IN ({?});

-- name: current_by_key
SELECT v.id, v.from_block, 0, v.expires, v.entity_key, v.content, v.data
FROM entity_keys AS k
JOIN current_versions AS v ON v.id = k.id
WHERE k.hash IN ({?});

-- name: closed_by_key
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data
FROM entity_keys AS k
JOIN closed_versions AS v ON v.id = k.id
WHERE k.hash IN ({?});

-- name: versions_down
-- The versions of an entity that began at a block or before, current and closed ones.
SELECT v.id, v.from_block, 0, v.expires, v.entity_key, v.content, v.data
FROM current_versions AS v
WHERE v.id = ? AND v.entity_key = ? AND v.from_block <= ?
UNION ALL
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data
FROM closed_versions AS v
WHERE v.id = ? AND v.entity_key = ? AND v.from_block <= ?
ORDER BY 2 DESC
LIMIT CAST(? AS BIGINT);

-- name: current_at
-- The version that can be seen at a block, and its payload.
SELECT v.id, v.from_block, 0, v.expires, v.entity_key, v.content, v.data, p.content
FROM entity_keys AS k
JOIN current_versions AS v ON v.id = k.id
LEFT JOIN contents AS p ON p.no = v.content
WHERE k.hash = ? AND v.from_block <= ? AND v.expires > ?;

-- name: closed_at
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data, p.content
FROM entity_keys AS k
JOIN closed_versions AS v ON v.id = k.id
LEFT JOIN contents AS p ON p.no = v.content
WHERE k.hash = ? AND v.from_block <= ? AND v.to_block > ?;

-- name: current_of_id
SELECT v.id, v.from_block, 0, v.expires, v.entity_key, v.content, v.data, p.content
FROM current_versions AS v
LEFT JOIN contents AS p ON p.no = v.content
WHERE v.id = ? AND v.from_block <= ? AND v.expires > ?;

-- name: closed_of_id
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data, p.content
FROM closed_versions AS v
LEFT JOIN contents AS p ON p.no = v.content
WHERE v.id = ? AND v.from_block <= ? AND v.to_block > ?;

-- name: current_by_id
SELECT id, from_block, 0, expires, entity_key, content, data
FROM current_versions
WHERE id IN ({?});

-- name: current_whole
-- With payloads that are not long: a long one is read when its entity is given out.
SELECT v.id, v.from_block, 0, v.expires, v.entity_key, v.content, v.data, (
    SELECT p.content FROM contents AS p WHERE p.no = v.content AND octet_length(p.content) <= 16384
)
FROM current_versions AS v
WHERE v.id IN ({?});

-- name: closed_by_id
SELECT id, from_block, to_block, expires, entity_key, content, data
FROM closed_versions
WHERE id IN ({?});

-- name: closed_by_id_at
SELECT id, from_block, to_block, expires, entity_key, content, data
FROM closed_versions
WHERE id IN ({?}) AND from_block <= ? AND to_block > ?;

-- name: existing
SELECT id FROM current_versions WHERE id IN ({?});

-- name: scan_current
SELECT id, from_block, 0, expires, entity_key, content, data
FROM current_versions
WHERE id < ? AND id >= ? AND from_block >= ? AND from_block <= ?
ORDER BY id DESC
LIMIT CAST(? AS BIGINT);

-- name: highest_current
-- The version of the highest id in a range.
SELECT id, from_block, 0, expires, entity_key, content, data
FROM current_versions
WHERE id < ? AND id >= ?
ORDER BY id DESC
LIMIT 1;

-- name: scan_past
-- Versions of a range of ids that can be seen at a block, current and closed ones.
SELECT id, from_block, 0, expires, entity_key, content, data
FROM current_versions
WHERE id < ? AND id >= ? AND from_block >= ? AND from_block <= ? AND expires > ?
UNION ALL
SELECT id, from_block, to_block, expires, entity_key, content, data
FROM closed_versions
WHERE id < ? AND id >= ? AND from_block >= ? AND from_block <= ? AND to_block > ?
ORDER BY 1 DESC
LIMIT CAST(? AS BIGINT);

-- name: current_between
SELECT id, from_block, 0, expires, entity_key, content, data
FROM current_versions
WHERE id >= ? AND id < ?;

-- name: closed_between
SELECT id, from_block, to_block, expires, entity_key, content, data
FROM closed_versions
WHERE id >= ? AND id < ?;

-- name: ended_above
-- Entities of which operations above a block have ended a version.
SELECT id
FROM closed_versions
WHERE to_block < expires AND to_block > ?;

-- name: ids_below
-- Entities, from an id on, of which a version ended at a block or before.
SELECT v.id
FROM (
    SELECT id FROM current_versions WHERE id > ? AND expires <= ?
    UNION
    SELECT id FROM closed_versions WHERE id > ? AND to_block <= ?
) AS v
ORDER BY v.id
LIMIT CAST(? AS BIGINT);

-- name: delete_current
DELETE FROM current_versions WHERE id IN ({?});

-- name: delete_closed
DELETE FROM closed_versions WHERE id = ? AND from_block = ?;

-- name: delete_key
DELETE FROM entity_keys WHERE hash = ? AND id = ?;

-- name: delete_keys
DELETE FROM entity_keys;

-- name: insert_missing_keys
INSERT INTO entity_keys (hash, id)
VALUES {(?, ?)}
ON CONFLICT DO NOTHING;

-- name: contents
SELECT no, content
FROM contents
WHERE no IN ({?});

-- name: delete_contents
DELETE FROM contents WHERE no IN ({?});

-- name: find_pages
-- Pages of runs on which keys from one on and below another may lie.
SELECT p.run, p.low, p.body
FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BYTEA))}) AS w (run, lo, hi)
JOIN postings AS p ON p.run = w.run
WHERE p.low >= COALESCE((
        SELECT f.low
        FROM postings AS f
        WHERE f.run = w.run AND f.low <= w.lo
        ORDER BY f.low DESC
        LIMIT 1
    ), '')
    AND p.low < w.hi
LIMIT CAST(? AS BIGINT);

-- name: run_pages
SELECT low, body
FROM postings
WHERE run = ? AND low >= ?
ORDER BY low
LIMIT CAST(? AS BIGINT);

-- name: run_pages_down
SELECT low, body
FROM postings
WHERE run = ? AND low < ?
ORDER BY low DESC
LIMIT CAST(? AS BIGINT);

-- name: run_start
-- The page on which a key may lie.
SELECT low
FROM postings
WHERE run = ? AND low <= ?
ORDER BY low DESC
LIMIT 1;

-- name: run_bound
-- The page before which a number of pages lie, from one on.
SELECT low
FROM postings
WHERE run = ? AND low >= ?
ORDER BY low
LIMIT 1 OFFSET CAST(? AS BIGINT);

-- name: run_sizes
SELECT run, count(*)
FROM postings
GROUP BY run;

-- name: drop_pages
DELETE FROM postings WHERE run = ? AND low >= ? AND low < ?;

-- name: drop_run
DELETE FROM postings WHERE run = ? AND low >= ?;

-- name: drop_runs
DELETE FROM postings;

-- name: count_versions
SELECT (SELECT count(*) FROM current_versions) + (SELECT count(*) FROM closed_versions);

-- name: openings
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data, p.content
FROM (
    SELECT id, from_block, expires AS to_block, expires, entity_key, content, data FROM current_versions
    UNION ALL
    SELECT id, from_block, to_block, expires, entity_key, content, data FROM closed_versions
) AS v
LEFT JOIN contents AS p ON p.no = v.content
ORDER BY v.from_block, v.entity_key;

-- A page of these without payloads, behind a block and a key.
-- name: openings_after
SELECT v.id, v.from_block, v.to_block, v.expires, v.entity_key, v.content, v.data
FROM (
    SELECT id, from_block, expires AS to_block, expires, entity_key, content, data FROM current_versions
    UNION ALL
    SELECT id, from_block, to_block, expires, entity_key, content, data FROM closed_versions
) AS v
WHERE v.from_block > ? OR (v.from_block = ? AND v.entity_key > ?)
ORDER BY v.from_block, v.entity_key
LIMIT CAST(? AS BIGINT);

-- name: closings
SELECT to_block, entity_key, from_block
FROM closed_versions
WHERE to_block < expires
ORDER BY to_block, entity_key;

-- name: closings_between
SELECT to_block, entity_key, from_block
FROM closed_versions
WHERE to_block < expires AND to_block >= ? AND to_block <= ?
ORDER BY to_block, entity_key;

-- name: number_bounds
SELECT
    (SELECT COALESCE(min(v.id), 1) FROM (SELECT min(id) AS id FROM current_versions UNION ALL SELECT min(id) FROM closed_versions) AS v),
    (SELECT COALESCE(max(v.id), 0) FROM (SELECT max(id) AS id FROM current_versions UNION ALL SELECT max(id) FROM closed_versions) AS v),
    (SELECT COALESCE(max(no), 0) FROM contents),
    (SELECT COALESCE(max(id), 0) FROM names);

-- name: missing_contents
SELECT v.entity_key, v.from_block, v.content
FROM (
    SELECT entity_key, from_block, content FROM current_versions WHERE content > 0
    UNION ALL
    SELECT entity_key, from_block, content FROM closed_versions WHERE content > 0
) AS v
LEFT JOIN contents AS p ON p.no = v.content
WHERE p.no IS NULL;

-- name: keys
SELECT hash, id FROM entity_keys;

-- name: shared_hashes
-- Hashes of keys, above one, that lead to several entities.
SELECT hash
FROM entity_keys
WHERE hash > ?
GROUP BY hash
HAVING count(*) > 1
ORDER BY hash
LIMIT CAST(? AS BIGINT);

-- name: key_hashes
-- Every version's key beside the hash that leads to it, where there is one.
SELECT v.entity_key, v.id, k.hash IS NOT NULL AS has, COALESCE(k.hash, 0)
FROM (
    SELECT entity_key, id FROM current_versions
    UNION
    SELECT entity_key, id FROM closed_versions
) AS v
LEFT JOIN entity_keys AS k ON k.id = v.id;
