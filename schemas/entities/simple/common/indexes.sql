-- The six indexes of the seed's simple schema: two for each table.

-- Serves: one attribute of one entity; uniqueness.
CREATE UNIQUE INDEX string_attributes_pk ON string_attributes (entity_key, key);

-- Serves: the entities with name = value.
CREATE INDEX string_attributes_kv_idx ON string_attributes (key, value);

-- Serves: one attribute of one entity; uniqueness.
CREATE UNIQUE INDEX numeric_attributes_pk ON numeric_attributes (entity_key, key);

-- Serves: the entities with name = value.
CREATE INDEX numeric_attributes_kv_idx ON numeric_attributes (key, value);

-- Serves: one entity; uniqueness.
CREATE UNIQUE INDEX payloads_pk ON payloads (entity_key);

-- Serves: the entities changed since a block.
CREATE INDEX payloads_block_idx ON payloads (block);
