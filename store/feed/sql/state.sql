-- All entities by the block that changed them last, which only the JSON and the
-- bitmaps know. Sorted is no more than block and key, in a temporary file where
-- there are many; the payloads are fetched one by one. The LIMIT keeps the order
-- of the subquery, and the reader checks it. Text that is not JSON has no block and
-- comes first. The casts are as in versions.sql; without CAST AS TEXT what
-- Arkiv writes, which is of type BLOB, would be read as JSONB.
WITH sorted AS MATERIALIZED (
    SELECT
        id,
        entity_key,
        CASE
            WHEN json_valid(CAST(numeric_attributes AS TEXT))
            THEN json_extract(CAST(numeric_attributes AS TEXT), '$.Values."$lastModifiedAtBlock"')
        END AS block
    FROM payloads
    ORDER BY block, entity_key
    LIMIT -1
)
SELECT
    p.entity_key,
    p.payload,
    CAST(p.content_type AS BLOB),
    CAST(p.string_attributes AS BLOB),
    CAST(p.numeric_attributes AS BLOB)
FROM sorted AS s
CROSS JOIN payloads AS p
    ON p.id = s.id
