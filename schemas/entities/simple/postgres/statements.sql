-- Postgres: text is read as it is. The rest is the common text.

-- name: get
SELECT block, payload, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key = ? AND expires > ?;

-- name: live
SELECT entity_key, block, content_type, string_attributes, numeric_attributes
FROM payloads
WHERE entity_key IN (?) AND expires > ?;

-- name: ends
SELECT entity_key, block, expires, numeric_attributes
FROM payloads
WHERE entity_key IN (?);

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
