-- All versions by the block that opened them, each with the end of the version
-- of the same entity before it (-1: there is none), to find overlaps.
-- payloads_entity_key_index gives the order without a sort, the primary key
-- finds the version before. Text is read as bytes because libSQL's driver cuts
-- text at NUL and makes times of what looks like one.
SELECT
    p.entity_key,
    p.from_block,
    p.to_block,
    COALESCE((
        SELECT q.to_block
        FROM payloads AS q
        WHERE q.entity_key = p.entity_key
          AND q.from_block < p.from_block
        ORDER BY q.from_block DESC
        LIMIT 1
    ), -1),
    p.payload,
    CAST(p.content_type AS BLOB),
    CAST(p.string_attributes AS BLOB),
    CAST(p.numeric_attributes AS BLOB)
FROM payloads AS p
ORDER BY p.from_block, p.entity_key
