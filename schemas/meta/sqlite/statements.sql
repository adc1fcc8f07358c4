-- name: meta_exists
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'varve_meta';

-- name: other_tables
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\';
