-- SQLite, libSQL: text is read as BLOB, so that no driver takes it for something
-- else (libSQL's turns what looks like a date into a time). The rest is the
-- common text.

-- name: get
SELECT block, payload, CAST(content_type AS BLOB), CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE entity_key = ? AND expires > ?;

-- name: live
SELECT entity_key, block, CAST(content_type AS BLOB), CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE entity_key IN ({?}) AND expires > ?;

-- name: ends
SELECT entity_key, block, expires, CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE entity_key IN ({?});

-- name: openings
SELECT entity_key, block, CAST(content_type AS BLOB), CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB), payload
FROM payloads
ORDER BY block, entity_key;

-- name: check_payloads
SELECT entity_key, block, expires, CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB)
FROM payloads
ORDER BY entity_key;

-- name: check_strings
SELECT entity_key, block, 0, CAST(key AS BLOB), CAST(value AS BLOB)
FROM string_attributes
ORDER BY entity_key;

-- name: check_numbers
SELECT entity_key, block, 0, CAST(key AS BLOB), value
FROM numeric_attributes
ORDER BY entity_key;
