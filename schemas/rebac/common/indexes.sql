-- Serves: the admins of an organization
CREATE INDEX rebac_members_org ON rebac_members (org, role, user_id);

-- Serves: the users of a group, when the closure is computed on the fly
CREATE INDEX rebac_group_members_group ON rebac_group_members (grp, role, user_id);

-- Serves: the groups below a group
CREATE INDEX rebac_hierarchy_parent ON rebac_hierarchy (parent, child);

-- Serves: the resources of an organization
CREATE INDEX rebac_resources_org ON rebac_resources (org, id);

-- Serves: the resources that a user or a group is on the list of
CREATE INDEX rebac_acl_subject ON rebac_acl (subject, relation, resource);

-- Serves: the users of a group, when the closure is materialised
CREATE INDEX rebac_closure_group ON rebac_closure (grp, role, user_id);
