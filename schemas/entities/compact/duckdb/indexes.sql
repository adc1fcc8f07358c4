-- DuckDB: an index of several columns finds nothing, so this is of the id alone.
-- There is none of what operations have ended: versions lie in the order of blocks nearly,
-- so that the least and the largest block of each row group tell which of them to read.

-- Serves: the version of an entity that was valid at a past block.
CREATE INDEX closed_versions_pk ON closed_versions (id);
