-- The versions that have ended, by the block that ended them.
-- payloads_delete_index (to_block) serves the range and most of the order.
-- A version that never was visible (from_block = to_block) ended nothing.
SELECT
    entity_key,
    from_block,
    to_block,
    CAST(numeric_attributes AS BLOB)
FROM payloads
WHERE to_block <= ?
  AND to_block > from_block
ORDER BY to_block, entity_key
