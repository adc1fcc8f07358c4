-- name: get
SELECT block, payload, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key = ? AND expires > ?;

-- name: live
SELECT entity_key, block, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key IN ({?}) AND expires > ?;

-- name: content
SELECT entity_key, payload
FROM payloads
WHERE entity_key IN ({?}) AND expires > ?;

-- name: ends
SELECT entity_key, block, expires, numeric_attributes
FROM payloads
WHERE entity_key IN ({?});

-- name: delete_strings
DELETE FROM string_attributes WHERE entity_key IN ({?});

-- name: delete_numbers
DELETE FROM numeric_attributes WHERE entity_key IN ({?});

-- name: delete_payloads
DELETE FROM payloads WHERE entity_key IN ({?});

-- name: prune_strings
DELETE FROM string_attributes WHERE entity_key IN (SELECT entity_key FROM payloads WHERE expires <= ?);

-- name: prune_numbers
DELETE FROM numeric_attributes WHERE entity_key IN (SELECT entity_key FROM payloads WHERE expires <= ?);

-- name: prune_payloads
DELETE FROM payloads WHERE expires <= ?;

-- name: count_strings
SELECT count(*) FROM string_attributes;

-- name: count_numbers
SELECT count(*) FROM numeric_attributes;

-- name: count_payloads
SELECT count(*) FROM payloads;

-- name: openings
SELECT entity_key, block, content_type, string_attributes, numeric_attributes, payload
FROM payloads
ORDER BY block, entity_key;

-- name: check_payloads
SELECT entity_key, block, expires, string_attributes, numeric_attributes
FROM payloads
ORDER BY entity_key;

-- name: check_strings
SELECT entity_key, block, CAST(0 AS BIGINT), key, value
FROM string_attributes
ORDER BY entity_key;

-- name: check_numbers
SELECT entity_key, block, CAST(0 AS BIGINT), key, value
FROM numeric_attributes
ORDER BY entity_key;
