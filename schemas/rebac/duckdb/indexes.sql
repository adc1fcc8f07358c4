-- DuckDB: indexes of one column; see tables.sql. Small tables are scanned as fast.
-- Serves: the list of a resource
CREATE INDEX rebac_acl_resource ON rebac_acl (resource);

-- Serves: the resources that a user or a group is on the list of
CREATE INDEX rebac_acl_subject ON rebac_acl (subject);
