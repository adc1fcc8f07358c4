-- name: meta_exists
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'varve_meta';

-- name: other_tables
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\';

-- Text is read as a blob: the library of libSQL ends the process for text that is
-- not UTF-8, which damage can make of any.
-- name: get_meta
SELECT CAST(value AS BLOB) FROM varve_meta WHERE name = ?;

-- name: head_and_horizon
SELECT block, digest, coalesce((SELECT CAST(value AS BLOB) FROM varve_meta WHERE name = 'entities.horizon'), x'')
FROM varve_blocks
ORDER BY block DESC
LIMIT 1;

-- name: list_meta
SELECT CAST(name AS BLOB), CAST(value AS BLOB) FROM varve_meta ORDER BY name;

-- The tables with their columns; of a table without any, an empty name.
-- name: list_columns
SELECT CAST(t.name AS BLOB), CAST(coalesce(c.name, '') AS BLOB)
FROM sqlite_master AS t
LEFT JOIN pragma_table_info(t.name) AS c
WHERE t.type = 'table';
