-- The last block that the store has followed; no row before the first.
SELECT block
FROM last_block
