-- name: meta_exists
SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'varve_meta';

-- name: other_tables
SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE';

-- name: list_tables
SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema();

-- A sort reads every block's row; of the highest number it is told without.
-- name: head
SELECT block, digest FROM varve_blocks WHERE block = (SELECT max(block) FROM varve_blocks);

-- name: head_and_horizon
SELECT block, digest, coalesce((SELECT value FROM varve_meta WHERE name = 'entities.horizon'), '')
FROM varve_blocks
WHERE block = (SELECT max(block) FROM varve_blocks);
