-- DuckDB: an expiration is unsigned among the numeric attributes and signed as a
-- block. And an index is used where its column is all that is asked for, so versions are
-- found by the key first (arkiv-columnar): 0.4 ms in place of 2.3 among 20,000. The rest is
-- the common text.

-- name: get
WITH v AS MATERIALIZED (SELECT * FROM payloads WHERE entity_key = ?)
SELECT from_block, payload, content_type, string_attributes, numeric_attributes
FROM v
WHERE from_block <= ? AND to_block > ?
ORDER BY from_block DESC
LIMIT 1;

-- name: live
WITH v AS MATERIALIZED (
    SELECT entity_key, from_block, to_block, content_type, string_attributes, numeric_attributes
    FROM payloads
    WHERE entity_key IN ({?})
)
SELECT entity_key, from_block, content_type, string_attributes, numeric_attributes
FROM v
WHERE to_block > ?;

-- name: content
WITH v AS MATERIALIZED (SELECT entity_key, to_block, payload FROM payloads WHERE entity_key IN ({?}))
SELECT entity_key, payload
FROM v
WHERE to_block > ?;

-- name: rewind_reopen_strings
UPDATE string_attributes AS t
SET to_block = CAST(n.value AS BIGINT)
FROM numeric_attributes AS n
WHERE t.to_block > ? AND t.to_block <= ?
    AND n.entity_key = t.entity_key AND n.key = '$expiration' AND n.from_block = t.from_block;

-- name: rewind_reopen_payloads
UPDATE payloads AS t
SET to_block = CAST(n.value AS BIGINT)
FROM numeric_attributes AS n
WHERE t.to_block > ? AND t.to_block <= ?
    AND n.entity_key = t.entity_key AND n.key = '$expiration' AND n.from_block = t.from_block;

-- name: rewind_reopen_numbers
UPDATE numeric_attributes AS t
SET to_block = CAST(n.value AS BIGINT)
FROM numeric_attributes AS n
WHERE t.to_block > ? AND t.to_block <= ?
    AND n.entity_key = t.entity_key AND n.key = '$expiration' AND n.from_block = t.from_block;
