-- SQLite: a table WITHOUT ROWID is its primary key, so there is no second copy.
-- One row for each relationship: subject has relation to object. The relations
-- and the identifiers of objects are described in package bench/social. All that
-- is known of an object lies side by side.
CREATE TABLE relationships (
    object INTEGER NOT NULL,
    relation INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    PRIMARY KEY (object, relation, subject)
) WITHOUT ROWID;
