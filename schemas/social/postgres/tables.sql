-- Postgres: no clustered tables. The index of the primary key holds all columns,
-- so that a check reads nothing else.
-- One row for each relationship: subject has relation to object. The relations
-- and the identifiers of objects are described in package bench/social.
CREATE TABLE relationships (
    object BIGINT NOT NULL,
    relation BIGINT NOT NULL,
    subject BIGINT NOT NULL,
    PRIMARY KEY (object, relation, subject)
);
