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

-- name: list_tables
SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema();
