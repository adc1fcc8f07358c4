-- Not information_schema, which leaves out the tables that a role may not read: to that
-- role a store is no empty schema.
-- name: meta_exists
SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'varve_meta';

-- Views are nobody's data, and what an extension brings along is not the user's.
-- name: other_tables
SELECT count(*)
FROM pg_class AS c
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
  AND c.relkind IN ('r', 'p')
  AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e');

-- The tables with their columns; of a table without any, an empty name.
-- name: list_columns
SELECT c.relname::text, coalesce(a.attname::text, '')
FROM pg_class AS c
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
  AND c.relkind IN ('r', 'p');
