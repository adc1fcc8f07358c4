-- The relations: 1 user#visibility@user:*, 2 user#visibility@user#follower,
-- 3 user#self, 4 user#follower, 5 user#blocked, 6 content#owner,
-- 7 content#visibility@user:*, 8 content#visibility@user#follower,
-- 9 interaction#creator, 10 interaction#parent.

-- May a viewer see a user: self + (visibility - blocked).
-- Arguments: user, viewer, viewer, viewer.
-- name: check_user
SELECT count(*)
FROM relationships AS self
WHERE self.object = ?
  AND self.relation = 3
  AND (self.subject = ?
    OR EXISTS (
      SELECT 1
      FROM relationships AS v
      WHERE v.object = self.object
        AND v.relation IN (1, 2)
        AND (v.relation = 1
          OR EXISTS (
            SELECT 1
            FROM relationships AS f
            WHERE f.object = v.subject AND f.relation = 4 AND f.subject = ?)))
    AND NOT EXISTS (
      SELECT 1
      FROM relationships AS b
      WHERE b.object = self.object AND b.relation = 5 AND b.subject = ?));

-- May a viewer see a piece of content: owner + (visibility - owner->blocked).
-- Arguments: content, viewer, viewer, viewer.
-- name: check_content
SELECT count(*)
FROM relationships AS own
WHERE own.object = ?
  AND own.relation = 6
  AND (own.subject = ?
    OR EXISTS (
      SELECT 1
      FROM relationships AS v
      WHERE v.object = own.object
        AND v.relation IN (7, 8)
        AND (v.relation = 7
          OR EXISTS (
            SELECT 1
            FROM relationships AS f
            WHERE f.object = v.subject AND f.relation = 4 AND f.subject = ?)))
    AND NOT EXISTS (
      SELECT 1
      FROM relationships AS b
      WHERE b.object = own.subject AND b.relation = 5 AND b.subject = ?));

-- May a viewer see an interaction: parent->view - creator->blocked.
-- Arguments: interaction, viewer, viewer, viewer, viewer.
-- name: check_interaction
SELECT count(*)
FROM relationships AS made
JOIN relationships AS par ON par.object = made.object AND par.relation = 10
JOIN relationships AS own ON own.object = par.subject AND own.relation = 6
WHERE made.object = ?
  AND made.relation = 9
  AND NOT EXISTS (
    SELECT 1
    FROM relationships AS c
    WHERE c.object = made.subject AND c.relation = 5 AND c.subject = ?)
  AND (own.subject = ?
    OR EXISTS (
      SELECT 1
      FROM relationships AS v
      WHERE v.object = own.object
        AND v.relation IN (7, 8)
        AND (v.relation = 7
          OR EXISTS (
            SELECT 1
            FROM relationships AS f
            WHERE f.object = v.subject AND f.relation = 4 AND f.subject = ?)))
    AND NOT EXISTS (
      SELECT 1
      FROM relationships AS b
      WHERE b.object = own.subject AND b.relation = 5 AND b.subject = ?));

-- name: has
SELECT count(*)
FROM relationships
WHERE object = ?
  AND relation = ?
  AND subject = ?;

-- name: insert
INSERT INTO relationships (object, relation, subject)
VALUES (?, ?, ?);

-- name: delete
DELETE FROM relationships
WHERE object = ?
  AND relation = ?
  AND subject = ?;

-- name: count
SELECT count(*) FROM relationships;

-- name: analyze
ANALYZE relationships;
