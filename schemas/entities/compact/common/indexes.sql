-- Serves: the version of an entity that was valid at a past block.
CREATE UNIQUE INDEX closed_versions_pk ON closed_versions (id, from_block);

-- Versions that ran out by themselves, most of them in many stores, are not in it, and
-- entries come in the order of blocks.
-- Serves: what operations have ended in a range of blocks, for logs of merged blocks.
CREATE INDEX closed_versions_ended ON closed_versions (to_block)
WHERE to_block < expires;
