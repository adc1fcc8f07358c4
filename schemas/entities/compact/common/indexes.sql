-- Serves: the version of an entity that was valid at a past block.
CREATE UNIQUE INDEX closed_versions_pk ON closed_versions (id, from_block);
