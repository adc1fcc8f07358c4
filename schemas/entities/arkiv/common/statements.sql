-- name: get
SELECT from_block, payload, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key = ? AND from_block <= ? AND to_block > ?
ORDER BY from_block DESC
LIMIT 1;

-- name: live
SELECT entity_key, from_block, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key IN ({?}) AND to_block > ?;

-- name: content
SELECT entity_key, payload
FROM payloads
WHERE entity_key IN ({?}) AND to_block > ?;

-- name: ends
SELECT entity_key, from_block, to_block, numeric_attributes
FROM payloads
WHERE entity_key IN ({?});

-- name: rewind_delete_strings
DELETE FROM string_attributes WHERE from_block > ?;

-- name: rewind_delete_numbers
DELETE FROM numeric_attributes WHERE from_block > ?;

-- name: rewind_delete_payloads
DELETE FROM payloads WHERE from_block > ?;

-- name: rewind_reopen_strings
-- Versions that ended after the block get their expiration back as end.
UPDATE string_attributes
SET to_block = (
    SELECT value FROM numeric_attributes AS n
    WHERE n.entity_key = string_attributes.entity_key AND n.key = '$expiration' AND n.from_block = string_attributes.from_block
)
WHERE to_block > ? AND to_block <= ?;

-- name: rewind_reopen_payloads
UPDATE payloads
SET to_block = (
    SELECT value FROM numeric_attributes AS n
    WHERE n.entity_key = payloads.entity_key AND n.key = '$expiration' AND n.from_block = payloads.from_block
)
WHERE to_block > ? AND to_block <= ?;

-- name: rewind_reopen_numbers
UPDATE numeric_attributes
SET to_block = (
    SELECT value FROM numeric_attributes AS n
    WHERE n.entity_key = numeric_attributes.entity_key AND n.key = '$expiration' AND n.from_block = numeric_attributes.from_block
)
WHERE to_block > ? AND to_block <= ?;

-- name: prune_strings
DELETE FROM string_attributes WHERE to_block <= ?;

-- name: prune_numbers
DELETE FROM numeric_attributes WHERE to_block <= ?;

-- name: prune_payloads
DELETE FROM payloads WHERE to_block <= ?;

-- name: count_strings
SELECT count(*) FROM string_attributes;

-- name: count_numbers
SELECT count(*) FROM numeric_attributes;

-- name: count_payloads
SELECT count(*) FROM payloads;

-- name: openings
SELECT entity_key, from_block, content_type, string_attributes, numeric_attributes, payload
FROM payloads
ORDER BY from_block, entity_key;

-- name: closings
-- Every version with its end and its attributes, which have the expiration: of the
-- payloads alone, so that damage to attribute rows does not change a history.
SELECT to_block, entity_key, from_block, numeric_attributes
FROM payloads
ORDER BY to_block, entity_key;

-- Those of some blocks, which the index for rewinding finds. Of all, the rows in their own
-- order and a sort are faster.
-- name: closings_between
SELECT to_block, entity_key, from_block, numeric_attributes
FROM payloads
WHERE to_block >= ? AND to_block <= ?
ORDER BY to_block, entity_key;

-- name: check_payloads
SELECT entity_key, from_block, to_block, string_attributes, numeric_attributes
FROM payloads
ORDER BY entity_key;

-- name: check_strings
SELECT entity_key, from_block, to_block, key, value
FROM string_attributes
ORDER BY entity_key;

-- name: check_numbers
SELECT entity_key, from_block, to_block, key, value
FROM numeric_attributes
ORDER BY entity_key;
