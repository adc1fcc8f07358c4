-- Postgres: text is read as it is, and an expiration is stored minus 2^63 among
-- the numeric attributes but plain in to_block. The rest is the common text.

-- name: get
SELECT from_block, payload, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key = ? AND from_block <= ? AND to_block > ?
ORDER BY from_block DESC
LIMIT 1;

-- name: live
SELECT entity_key, from_block, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key IN (?) AND to_block > ?;

-- name: ends
SELECT entity_key, from_block, to_block, numeric_attributes
FROM payloads
WHERE entity_key IN (?);

-- name: rewind_reopen_strings
UPDATE string_attributes AS t
SET to_block = n.value - (-9223372036854775808)
FROM numeric_attributes AS n
WHERE t.to_block > ? AND t.to_block <= ?
    AND n.entity_key = t.entity_key AND n.key = '$expiration' AND n.from_block = t.from_block;

-- name: rewind_reopen_payloads
UPDATE payloads AS t
SET to_block = n.value - (-9223372036854775808)
FROM numeric_attributes AS n
WHERE t.to_block > ? AND t.to_block <= ?
    AND n.entity_key = t.entity_key AND n.key = '$expiration' AND n.from_block = t.from_block;

-- name: rewind_reopen_numbers
UPDATE numeric_attributes AS t
SET to_block = n.value - (-9223372036854775808)
FROM numeric_attributes AS n
WHERE t.to_block > ? AND t.to_block <= ?
    AND n.entity_key = t.entity_key AND n.key = '$expiration' AND n.from_block = t.from_block;

-- name: openings
SELECT entity_key, from_block, content_type, string_attributes, numeric_attributes, payload
FROM payloads
ORDER BY from_block, entity_key;

-- name: closings
SELECT p.to_block, p.entity_key, p.from_block
FROM payloads AS p
JOIN numeric_attributes AS n ON n.entity_key = p.entity_key AND n.key = '$expiration' AND n.from_block = p.from_block
WHERE p.to_block < n.value - (-9223372036854775808)
ORDER BY p.to_block, p.entity_key;

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
