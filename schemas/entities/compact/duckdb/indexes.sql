-- DuckDB: an index of several columns finds nothing, so this is of the id alone.

-- Serves: the version of an entity that was valid at a past block.
CREATE INDEX closed_versions_pk ON closed_versions (id);
