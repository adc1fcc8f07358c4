-- SQLite: tables WITHOUT ROWID are clustered by their primary key, so the key that
-- a check asks for finds everything in one place.
-- One row for each user.
CREATE TABLE rebac_users (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

-- One row for each organization.
CREATE TABLE rebac_orgs (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

-- Who belongs to an organization. Role 0 is a member, 1 an admin.
CREATE TABLE rebac_members (
    user_id INTEGER NOT NULL,
    org INTEGER NOT NULL,
    role INTEGER NOT NULL,
    PRIMARY KEY (user_id, org)
) WITHOUT ROWID;

-- One row for each group; it lies within an organization.
CREATE TABLE rebac_groups (
    id INTEGER NOT NULL PRIMARY KEY,
    org INTEGER NOT NULL
);

-- Who belongs to a group by itself. Role 0 is a member, 1 a manager.
CREATE TABLE rebac_group_members (
    user_id INTEGER NOT NULL,
    grp INTEGER NOT NULL,
    role INTEGER NOT NULL,
    PRIMARY KEY (user_id, grp, role)
) WITHOUT ROWID;

-- Whoever has a role in the child has it in the parent.
CREATE TABLE rebac_hierarchy (
    child INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    PRIMARY KEY (child, parent)
) WITHOUT ROWID;

-- One row for each resource; it belongs to an organization.
CREATE TABLE rebac_resources (
    id INTEGER NOT NULL PRIMARY KEY,
    org INTEGER NOT NULL
);

-- The access lists. Relation 1 is a managing user, 2 a managing group, 3 a viewing
-- user, 4 a viewing group; the subject is the user or the group.
CREATE TABLE rebac_acl (
    resource INTEGER NOT NULL,
    relation INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    PRIMARY KEY (resource, relation, subject)
) WITHOUT ROWID;

-- The materialised closure: the highest role of a user in a group, by itself or
-- through groups below it.
CREATE TABLE rebac_closure (
    user_id INTEGER NOT NULL,
    grp INTEGER NOT NULL,
    role INTEGER NOT NULL,
    PRIMARY KEY (user_id, grp)
) WITHOUT ROWID;
