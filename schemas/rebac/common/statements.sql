-- A check finds a row when the user may. The branches go from the cheapest to the
-- dearest, and LIMIT ends at the first row. In each, placeholders are the resource
-- and the user, in this order; listings take their one argument in each place.
--
-- manage: managing users, managers of managing groups, admins of the organization.
-- view: all of these, viewing users, and whoever has a role in viewing groups.

-- name: check_manage
SELECT 1 FROM rebac_acl WHERE resource = ? AND relation = 1 AND subject = ?
UNION ALL
SELECT 1
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.user_id = ? AND m.org = r.org AND m.role = 1
UNION ALL
SELECT 1
FROM rebac_acl AS a
CROSS JOIN rebac_closure AS c
WHERE a.resource = ? AND a.relation = 2 AND c.user_id = ? AND c.grp = a.subject AND c.role = 1
LIMIT 1;

-- name: check_view
SELECT 1 FROM rebac_acl WHERE resource = ? AND relation IN (1, 3) AND subject = ?
UNION ALL
SELECT 1
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.user_id = ? AND m.org = r.org AND m.role = 1
UNION ALL
SELECT 1
FROM rebac_acl AS a
CROSS JOIN rebac_closure AS c
WHERE a.resource = ? AND a.relation IN (2, 4) AND c.user_id = ? AND c.grp = a.subject
    AND (a.relation = 4 OR c.role = 1)
LIMIT 1;

-- On the fly a check walks from the groups of the resource down: they are fewer
-- than those of the user.
-- name: check_manage_fly
SELECT 1 FROM rebac_acl WHERE resource = ? AND relation = 1 AND subject = ?
UNION ALL
SELECT 1
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.user_id = ? AND m.org = r.org AND m.role = 1
UNION ALL
SELECT 1
FROM (
    WITH RECURSIVE below (grp) AS (
        SELECT subject FROM rebac_acl WHERE resource = ? AND relation = 2
        UNION
        SELECT h.child FROM below AS b CROSS JOIN rebac_hierarchy AS h WHERE h.parent = b.grp
    )
    SELECT grp FROM below
) AS b
CROSS JOIN rebac_group_members AS m
WHERE m.user_id = ? AND m.grp = b.grp AND m.role = 1
LIMIT 1;

-- name: check_view_fly
SELECT 1 FROM rebac_acl WHERE resource = ? AND relation IN (1, 3) AND subject = ?
UNION ALL
SELECT 1
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.user_id = ? AND m.org = r.org AND m.role = 1
UNION ALL
SELECT 1
FROM (
    WITH RECURSIVE below (grp, relation) AS (
        SELECT subject, relation FROM rebac_acl WHERE resource = ? AND relation IN (2, 4)
        UNION
        SELECT h.child, b.relation FROM below AS b CROSS JOIN rebac_hierarchy AS h WHERE h.parent = b.grp
    )
    SELECT grp, relation FROM below
) AS b
CROSS JOIN rebac_group_members AS m
WHERE m.user_id = ? AND m.grp = b.grp AND (b.relation = 4 OR m.role = 1)
LIMIT 1;

-- The resources that a user may manage or view, each once.
-- name: list_manage
SELECT resource FROM rebac_acl WHERE subject = ? AND relation = 1
UNION
SELECT r.id
FROM rebac_members AS m
CROSS JOIN rebac_resources AS r
WHERE m.user_id = ? AND m.role = 1 AND r.org = m.org
UNION
SELECT a.resource
FROM rebac_closure AS c
CROSS JOIN rebac_acl AS a
WHERE c.user_id = ? AND c.role = 1 AND a.subject = c.grp AND a.relation = 2;

-- name: list_view
SELECT resource FROM rebac_acl WHERE subject = ? AND relation IN (1, 3)
UNION
SELECT r.id
FROM rebac_members AS m
CROSS JOIN rebac_resources AS r
WHERE m.user_id = ? AND m.role = 1 AND r.org = m.org
UNION
SELECT a.resource
FROM rebac_closure AS c
CROSS JOIN rebac_acl AS a
WHERE c.user_id = ? AND a.subject = c.grp AND a.relation IN (2, 4)
    AND (a.relation = 4 OR c.role = 1);

-- name: list_manage_fly
WITH RECURSIVE reach (grp) AS (
    SELECT grp FROM rebac_group_members WHERE user_id = ? AND role = 1
    UNION
    SELECT h.parent FROM reach AS x CROSS JOIN rebac_hierarchy AS h WHERE h.child = x.grp
)
SELECT resource FROM rebac_acl WHERE subject = ? AND relation = 1
UNION
SELECT r.id
FROM rebac_members AS m
CROSS JOIN rebac_resources AS r
WHERE m.user_id = ? AND m.role = 1 AND r.org = m.org
UNION
SELECT a.resource
FROM reach AS x
CROSS JOIN rebac_acl AS a
WHERE a.subject = x.grp AND a.relation = 2;

-- name: list_view_fly
WITH RECURSIVE reach (grp, role) AS (
    SELECT grp, role FROM rebac_group_members WHERE user_id = ?
    UNION
    SELECT h.parent, x.role FROM reach AS x CROSS JOIN rebac_hierarchy AS h WHERE h.child = x.grp
)
SELECT resource FROM rebac_acl WHERE subject = ? AND relation IN (1, 3)
UNION
SELECT r.id
FROM rebac_members AS m
CROSS JOIN rebac_resources AS r
WHERE m.user_id = ? AND m.role = 1 AND r.org = m.org
UNION
SELECT a.resource
FROM reach AS x
CROSS JOIN rebac_acl AS a
WHERE a.subject = x.grp AND a.relation IN (2, 4)
    AND (a.relation = 4 OR x.role = 1);

-- The users who may manage or view a resource, each once.
-- name: users_manage
SELECT subject FROM rebac_acl WHERE resource = ? AND relation = 1
UNION
SELECT m.user_id
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.org = r.org AND m.role = 1
UNION
SELECT c.user_id
FROM rebac_acl AS a
CROSS JOIN rebac_closure AS c
WHERE a.resource = ? AND a.relation = 2 AND c.grp = a.subject AND c.role = 1;

-- name: users_view
SELECT subject FROM rebac_acl WHERE resource = ? AND relation IN (1, 3)
UNION
SELECT m.user_id
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.org = r.org AND m.role = 1
UNION
SELECT c.user_id
FROM rebac_acl AS a
CROSS JOIN rebac_closure AS c
WHERE a.resource = ? AND a.relation IN (2, 4) AND c.grp = a.subject
    AND (a.relation = 4 OR c.role = 1);

-- name: users_manage_fly
WITH RECURSIVE below (grp) AS (
    SELECT subject FROM rebac_acl WHERE resource = ? AND relation = 2
    UNION
    SELECT h.child FROM below AS b CROSS JOIN rebac_hierarchy AS h WHERE h.parent = b.grp
)
SELECT subject FROM rebac_acl WHERE resource = ? AND relation = 1
UNION
SELECT m.user_id
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.org = r.org AND m.role = 1
UNION
SELECT m.user_id
FROM below AS b
CROSS JOIN rebac_group_members AS m
WHERE m.grp = b.grp AND m.role = 1;

-- name: users_view_fly
WITH RECURSIVE below (grp, relation) AS (
    SELECT subject, relation FROM rebac_acl WHERE resource = ? AND relation IN (2, 4)
    UNION
    SELECT h.child, b.relation FROM below AS b CROSS JOIN rebac_hierarchy AS h WHERE h.parent = b.grp
)
SELECT subject FROM rebac_acl WHERE resource = ? AND relation IN (1, 3)
UNION
SELECT m.user_id
FROM rebac_resources AS r
CROSS JOIN rebac_members AS m
WHERE r.id = ? AND m.org = r.org AND m.role = 1
UNION
SELECT m.user_id
FROM below AS b
CROSS JOIN rebac_group_members AS m
WHERE m.grp = b.grp AND (b.relation = 4 OR m.role = 1);

-- name: clear_closure
DELETE FROM rebac_closure;

-- name: build_closure
INSERT INTO rebac_closure (user_id, grp, role)
WITH RECURSIVE reach (user_id, grp, role) AS (
    SELECT user_id, grp, role FROM rebac_group_members
    UNION
    SELECT x.user_id, h.parent, x.role FROM reach AS x CROSS JOIN rebac_hierarchy AS h WHERE h.child = x.grp
)
SELECT user_id, grp, max(role)
FROM reach
GROUP BY user_id, grp
ORDER BY user_id, grp;

-- name: count_acl
SELECT count(*) FROM rebac_acl;

-- name: count_closure
SELECT count(*) FROM rebac_closure;

-- The planner's statistics, on engines that keep them.
-- name: analyze
ANALYZE;
