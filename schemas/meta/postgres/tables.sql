-- What a store knows of itself: its format, layout and options.
CREATE TABLE varve_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Every block applied, with the digest of the history up to it.
CREATE TABLE varve_blocks (
    block BIGINT NOT NULL PRIMARY KEY,
    digest BYTEA NOT NULL
);
