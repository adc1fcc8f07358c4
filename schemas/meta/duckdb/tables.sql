-- What a store knows of itself: its format, layout and options.
CREATE TABLE varve_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Every block applied, with the digest of the history up to it: 32 bytes, after which,
-- where they are known, come the block's hash in its chain (32), its time (8) and a sum
-- of all (4).
CREATE TABLE varve_blocks (
    block BIGINT NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL
);
