-- name: meta_exists
SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'varve_meta';

-- name: other_tables
SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE';

-- The tables with their columns; of a table without any, an empty name.
-- name: list_columns
SELECT t.table_name, coalesce(c.column_name, '')
FROM information_schema.tables AS t
LEFT JOIN information_schema.columns AS c
    ON c.table_catalog = t.table_catalog AND c.table_schema = t.table_schema AND c.table_name = t.table_name
WHERE t.table_catalog = current_database() AND t.table_schema = current_schema();

-- A sort reads every block's row; of the highest number it is told without.
-- name: head
SELECT block, digest FROM varve_blocks WHERE block = (SELECT max(block) FROM varve_blocks);

-- name: head_and_horizon
SELECT block, digest, coalesce((SELECT value FROM varve_meta WHERE name = 'entities.horizon'), '')
FROM varve_blocks
WHERE block = (SELECT max(block) FROM varve_blocks);
