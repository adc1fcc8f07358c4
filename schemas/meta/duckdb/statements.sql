-- name: meta_exists
SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'varve_meta';

-- name: other_tables
SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE';

-- name: list_tables
SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema();
