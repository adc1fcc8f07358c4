-- SQLite, libSQL: a list of VALUES has no column names of its own choosing, and
-- CROSS JOIN keeps it the outer loop. The rest is the common text.

-- name: current_postings_list
SELECT p.attr, p.value, p.chunk, p.ids
FROM (VALUES {(?, ?, ?)}) AS w
CROSS JOIN current_postings AS p ON p.attr = w.column1 AND p.value = w.column2 AND p.chunk = w.column3;

-- name: past_postings_list
SELECT p.attr, p.value, p.chunk, p.ids
FROM (VALUES {(?, ?, ?)}) AS w
CROSS JOIN past_postings AS p ON p.attr = w.column1 AND p.value = w.column2 AND p.chunk = w.column3;

-- name: delete_current_postings
DELETE FROM current_postings WHERE attr = ? AND value = ? AND chunk = ?;

-- name: delete_past_postings
DELETE FROM past_postings WHERE attr = ? AND value = ? AND chunk = ?;
