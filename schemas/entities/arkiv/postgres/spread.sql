-- Run after the tables are made where they are spread over the machines of a Citus
-- cluster: by the entity, so that all rows of a version lie together.

-- As in the layout compact, whose file says what the two are for; the key is of the type
-- by which these tables are spread, so that their shards move together.
CREATE TABLE varve_commit (
    number BIGINT NOT NULL,
    shards BIGINT NOT NULL,
    CONSTRAINT "citus.shard_count must be 2 or more" CHECK (shards > 1)
);

CREATE TABLE varve_commit_shards (
    shard BYTEA PRIMARY KEY,
    number BIGINT NOT NULL
);

SELECT create_distributed_table('varve_commit_shards', 'shard', colocate_with => 'none');

-- One row for each shard: a key that leads to it.
INSERT INTO varve_commit_shards (shard, number)
SELECT min(encode(int8send(k), 'hex'))::bytea, 0
FROM generate_series(1, 100000) AS k
GROUP BY get_shard_id_for_distribution_column('varve_commit_shards', encode(int8send(k), 'hex')::bytea);

INSERT INTO varve_commit (number, shards)
SELECT 0, count(*) FROM pg_dist_shard WHERE logicalrelid = 'varve_commit_shards'::regclass;

SELECT create_distributed_table('payloads', 'entity_key', colocate_with => 'varve_commit_shards');

SELECT create_distributed_table('string_attributes', 'entity_key', colocate_with => 'varve_commit_shards');

SELECT create_distributed_table('numeric_attributes', 'entity_key', colocate_with => 'varve_commit_shards');
