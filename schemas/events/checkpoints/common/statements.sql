-- name: get
SELECT position FROM event_checkpoints WHERE consumer = ?;

-- name: list
SELECT consumer, position FROM event_checkpoints ORDER BY consumer;

-- name: insert
INSERT INTO event_checkpoints (consumer, position) VALUES (?, ?);

-- name: update
UPDATE event_checkpoints SET position = ? WHERE consumer = ?;
