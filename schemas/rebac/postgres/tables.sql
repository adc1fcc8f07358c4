-- Postgres: no clustered tables; the primary keys hold all columns that a check
-- reads, so that the table is not visited.
-- One row for each user.
CREATE TABLE rebac_users (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL
);

-- One row for each organization.
CREATE TABLE rebac_orgs (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL
);

-- Who belongs to an organization. Role 0 is a member, 1 an admin.
CREATE TABLE rebac_members (
    user_id BIGINT NOT NULL,
    org BIGINT NOT NULL,
    role BIGINT NOT NULL,
    PRIMARY KEY (user_id, org)
);

-- One row for each group; it lies within an organization.
CREATE TABLE rebac_groups (
    id BIGINT NOT NULL PRIMARY KEY,
    org BIGINT NOT NULL
);

-- Who belongs to a group by itself. Role 0 is a member, 1 a manager.
CREATE TABLE rebac_group_members (
    user_id BIGINT NOT NULL,
    grp BIGINT NOT NULL,
    role BIGINT NOT NULL,
    PRIMARY KEY (user_id, grp, role)
);

-- Whoever has a role in the child has it in the parent.
CREATE TABLE rebac_hierarchy (
    child BIGINT NOT NULL,
    parent BIGINT NOT NULL,
    PRIMARY KEY (child, parent)
);

-- One row for each resource; it belongs to an organization.
CREATE TABLE rebac_resources (
    id BIGINT NOT NULL PRIMARY KEY,
    org BIGINT NOT NULL
);

-- The access lists. Relation 1 is a managing user, 2 a managing group, 3 a viewing
-- user, 4 a viewing group; the subject is the user or the group.
CREATE TABLE rebac_acl (
    resource BIGINT NOT NULL,
    relation BIGINT NOT NULL,
    subject BIGINT NOT NULL,
    PRIMARY KEY (resource, relation, subject)
);

-- The materialised closure: the highest role of a user in a group, by itself or
-- through groups below it.
CREATE TABLE rebac_closure (
    user_id BIGINT NOT NULL,
    grp BIGINT NOT NULL,
    role BIGINT NOT NULL,
    PRIMARY KEY (user_id, grp)
);
