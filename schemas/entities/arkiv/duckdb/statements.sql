-- DuckDB: an expiration is unsigned among the numeric attributes and signed as a
-- block. The rest is the common text.

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
