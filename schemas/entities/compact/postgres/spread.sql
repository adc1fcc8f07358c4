-- Run after the tables are made where they are spread over the machines of a Citus
-- cluster. What grows with payloads and versions is spread: payloads by number, versions
-- and keys by the entity's number, so that their join stays on a machine. The rest stays
-- with the coordinator: the log, which is short, what every view reads first, and the
-- postings. By run these would hardly be spread, since most are in the largest run, and
-- Citus takes no search for several pages at once.

-- A commit reaches the machines one after the other, and a view begins on each by itself:
-- these two tables tell whether a view is of one commit everywhere. They are the engine's,
-- which raises the numbers with each write transaction (store/postgres).
-- How many of those the coordinator has committed, and on how many shards the same number
-- is; one row. A change of a single shard would be committed there before it is committed
-- here, so there must be more.
CREATE TABLE varve_commit (
    number BIGINT NOT NULL,
    shards BIGINT NOT NULL,
    CONSTRAINT "citus.shard_count must be 2 or more" CHECK (shards > 1)
);

CREATE TABLE varve_commit_shards (
    shard BIGINT PRIMARY KEY,
    number BIGINT NOT NULL
);

SELECT create_distributed_table('varve_commit_shards', 'shard', colocate_with => 'none');

-- One row for each shard: a key that leads to it.
INSERT INTO varve_commit_shards (shard, number)
SELECT min(k), 0
FROM generate_series(1, 100000) AS k
GROUP BY get_shard_id_for_distribution_column('varve_commit_shards', k);

INSERT INTO varve_commit (number, shards)
SELECT 0, count(*) FROM pg_dist_shard WHERE logicalrelid = 'varve_commit_shards'::regclass;

SELECT create_distributed_table('contents', 'no', colocate_with => 'varve_commit_shards');

SELECT create_distributed_table('entity_keys', 'id', colocate_with => 'varve_commit_shards');

SELECT create_distributed_table('current_versions', 'id', colocate_with => 'varve_commit_shards');

SELECT create_distributed_table('closed_versions', 'id', colocate_with => 'varve_commit_shards');
