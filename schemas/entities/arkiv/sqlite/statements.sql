-- SQLite, libSQL: text is read as BLOB, so that no driver takes it for something
-- else (libSQL's turns what looks like a date into a time). The rest is the
-- common text.

-- name: get
SELECT from_block, payload, CAST(content_type AS BLOB), CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE entity_key = ? AND from_block <= ? AND to_block > ?
ORDER BY from_block DESC
LIMIT 1;

-- name: live
SELECT entity_key, from_block, CAST(content_type AS BLOB), CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE entity_key IN ({?}) AND to_block > ?;

-- name: ends
SELECT entity_key, from_block, to_block, CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE entity_key IN ({?});

-- Row numbers are sorted alone, because a sort writes the payloads that it holds
-- into a temporary file. Then the rows are fetched in the order of the outer loop,
-- which the caller checks.
-- name: openings
SELECT e.entity_key, e.from_block, CAST(e.content_type AS BLOB), CAST(e.string_attributes AS BLOB), CAST(e.numeric_attributes AS BLOB), e.payload
FROM (
    SELECT rowid AS id FROM payloads ORDER BY from_block, entity_key LIMIT -1
) AS x
CROSS JOIN payloads AS e ON e.rowid = x.id;

-- name: closings
SELECT to_block, entity_key, from_block, CAST(numeric_attributes AS BLOB)
FROM payloads
ORDER BY to_block, entity_key;

-- name: closings_between
SELECT to_block, entity_key, from_block, CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE to_block >= ? AND to_block <= ?
ORDER BY to_block, entity_key;

-- name: check_payloads
SELECT entity_key, from_block, to_block, CAST(string_attributes AS BLOB), CAST(numeric_attributes AS BLOB)
FROM payloads
ORDER BY entity_key;

-- name: check_strings
SELECT entity_key, from_block, to_block, CAST(key AS BLOB), CAST(value AS BLOB)
FROM string_attributes
ORDER BY entity_key;

-- name: check_numbers
SELECT entity_key, from_block, to_block, CAST(key AS BLOB), value
FROM numeric_attributes
ORDER BY entity_key;
