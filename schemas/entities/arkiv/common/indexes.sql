-- The seed's 13 indexes in its order; the layout arkiv-N has the first N.
-- Arkiv's database has two more that the seed does not count
-- (numeric_attributes_entity_kv_idx and payloads_entity_key_index).

-- Serves: one attribute of one version, to compare it or to close it; uniqueness.
CREATE UNIQUE INDEX string_attributes_pk ON string_attributes (entity_key, key, from_block);

-- Serves: every value of a name within a range of blocks.
CREATE INDEX string_attributes_entity_key_value_index ON string_attributes (from_block, to_block, key, value);

-- Serves: the entities with name = value at a block, newest versions first.
CREATE INDEX string_attributes_kv_temporal_idx ON string_attributes (key, value, from_block DESC, to_block DESC);

-- Serves: the entities with a name within a range of blocks.
CREATE INDEX string_attributes_entity_key_index ON string_attributes (from_block, to_block, key);

-- Serves: pruning and rewinding.
CREATE INDEX string_attributes_delete_index ON string_attributes (to_block);

-- Serves: the newest value of one attribute of one entity.
CREATE INDEX string_attributes_entity_kv_idx ON string_attributes (entity_key, key, from_block DESC);

-- Serves: one attribute of one version, to compare it or to close it; uniqueness.
CREATE UNIQUE INDEX numeric_attributes_pk ON numeric_attributes (entity_key, key, from_block);

-- Serves: every value of a name within a range of blocks.
CREATE INDEX numeric_attributes_entity_key_value_index ON numeric_attributes (from_block, to_block, key, value);

-- Serves: the entities with a name within a range of blocks.
CREATE INDEX numeric_attributes_entity_key_index ON numeric_attributes (from_block, to_block, key);

-- Serves: the entities with name = value at a block, newest versions first.
CREATE INDEX numeric_attributes_kv_temporal_idx ON numeric_attributes (key, value, from_block DESC, to_block DESC);

-- Serves: pruning and rewinding.
CREATE INDEX numeric_attributes_delete_index ON numeric_attributes (to_block);

-- Serves: an entity at a block.
CREATE UNIQUE INDEX payloads_pk ON payloads (entity_key, from_block);

-- Serves: pruning and rewinding.
CREATE INDEX payloads_delete_index ON payloads (to_block);

-- Of the layout arkiv-ordered, in place of numeric_attributes_entity_key_value_index.

-- Serves: the numbers of a name in a range, newest versions first; all versions, by $sequence.
CREATE INDEX numeric_attributes_k_temporal_idx ON numeric_attributes (key, from_block DESC, to_block DESC, value);

-- Of the layout arkiv-columnar, in place of all others: what is found by a value is
-- scanned, column by column.

-- Serves: the versions of an entity, by its key alone.
CREATE INDEX payloads_key_idx ON payloads (entity_key);
