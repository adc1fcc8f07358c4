-- name: get_meta
SELECT value FROM varve_meta WHERE name = ?;

-- name: list_meta
SELECT name, value FROM varve_meta ORDER BY name;

-- name: delete_meta
DELETE FROM varve_meta WHERE name = ?;

-- name: insert_meta
INSERT INTO varve_meta (name, value) VALUES (?, ?);

-- name: head
SELECT block, digest FROM varve_blocks ORDER BY block DESC LIMIT 1;

-- The head and the horizon in one statement: every view begins with it.
-- name: head_and_horizon
SELECT block, digest, coalesce((SELECT value FROM varve_meta WHERE name = 'entities.horizon'), '')
FROM varve_blocks
ORDER BY block DESC
LIMIT 1;

-- name: block_at_or_below
SELECT block, digest FROM varve_blocks WHERE block <= ? ORDER BY block DESC LIMIT 1;

-- name: block_at_or_above
SELECT block, digest FROM varve_blocks WHERE block >= ? ORDER BY block LIMIT 1;

-- name: blocks_between
SELECT block, digest FROM varve_blocks WHERE block >= ? AND block <= ? ORDER BY block LIMIT CAST(? AS BIGINT);

-- name: insert_block
INSERT INTO varve_blocks (block, digest) VALUES (?, ?);

-- name: delete_blocks_above
DELETE FROM varve_blocks WHERE block > ?;

-- name: block_range
SELECT coalesce(min(block), 0), coalesce(max(block), 0), count(*) FROM varve_blocks;

-- The blocks of which the chain's hash or time is known: what is recorded of these is longer
-- than a digest.
-- name: list_identified
SELECT block, digest FROM varve_blocks WHERE block <= ? AND octet_length(digest) > 32 ORDER BY block;

-- name: list_blocks
SELECT block, digest FROM varve_blocks ORDER BY block;
