-- What a database has that is, as far as the engine can see, one of a Citus coordinator:
-- its functions record how they are called. Tables stay where they are.
SET allow_system_table_mods = on;

CREATE TABLE pg_catalog.pg_dist_local_group (groupid INT);
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid REGCLASS, shardid BIGINT);
CREATE TABLE pg_catalog.citus_calls (n BIGSERIAL, call TEXT);
INSERT INTO pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
VALUES (99999, 'citus', 10, 11, false, '13.2-1');

CREATE FUNCTION pg_catalog.create_distributed_table(name REGCLASS, key TEXT, colocate_with TEXT) RETURNS VOID LANGUAGE sql AS $$
    INSERT INTO pg_catalog.citus_calls (call) VALUES (name || ' by ' || key || ' with ' || colocate_with);
    INSERT INTO pg_catalog.pg_dist_shard SELECT name, generate_series(1, 4);
$$;

CREATE FUNCTION pg_catalog.get_shard_id_for_distribution_column(name REGCLASS, value ANYELEMENT) RETURNS BIGINT LANGUAGE sql AS $$
    SELECT abs(hashtext(value::TEXT)) % 4 + 1;
$$;

CREATE TABLE pg_catalog.citus_workers (nodename TEXT, nodeport INT, success BOOLEAN, result TEXT);
INSERT INTO pg_catalog.citus_workers VALUES ('w1', 5432, true, 'fsync on, full_page_writes on');
CREATE FUNCTION pg_catalog.run_command_on_workers(command TEXT) RETURNS SETOF pg_catalog.citus_workers LANGUAGE sql AS $$
    SELECT * FROM pg_catalog.citus_workers;
$$;
