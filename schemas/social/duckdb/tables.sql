-- DuckDB: its indexes serve one column and constants only, not the joins of a
-- check, and must fit into memory. Rows are loaded in the order of their objects,
-- so that the smallest and largest value of each row group find an object.
-- One row for each relationship: subject has relation to object. The relations
-- and the identifiers of objects are described in package bench/social.
CREATE TABLE relationships (
    object BIGINT NOT NULL,
    relation BIGINT NOT NULL,
    subject BIGINT NOT NULL
);
