-- Postgres: the type of a blob is BYTEA. The rest is the common text.

-- name: current_postings_list
SELECT p.attr, p.value, p.chunk, p.ids
FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BIGINT))}) AS w (attr, value, chunk)
JOIN current_postings AS p ON p.attr = w.attr AND p.value = w.value AND p.chunk = w.chunk;

-- name: past_postings_list
SELECT p.attr, p.value, p.chunk, p.ids
FROM (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BIGINT))}) AS w (attr, value, chunk)
JOIN past_postings AS p ON p.attr = w.attr AND p.value = w.value AND p.chunk = w.chunk;

-- name: delete_current_postings
DELETE FROM current_postings
WHERE (attr, value, chunk) IN (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BIGINT))});

-- name: delete_past_postings
DELETE FROM past_postings
WHERE (attr, value, chunk) IN (VALUES {(CAST(? AS BIGINT), CAST(? AS BYTEA), CAST(? AS BIGINT))});
