-- Serves: the version of an entity that was valid at a past block.
CREATE UNIQUE INDEX closed_versions_pk ON closed_versions (id, from_block);

-- Serves: what operations have ended in a range of blocks (closings_between), for the logs
-- of blocks that are merged. Versions that ran out by themselves, most of them in many
-- stores, are not in it, and entries come in the order of blocks.
CREATE INDEX closed_versions_ended ON closed_versions (to_block)
WHERE to_block < expires;
