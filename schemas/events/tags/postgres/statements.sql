-- Postgres: lists are one argument, because it plans a long list for longer than it
-- runs it.

-- A condition: the positions are one argument, as "{1,2,3}".
-- name: listed_positions
= ANY (CAST(? AS BIGINT[]));

-- The first rows of each term in the first argument, from its position in the
-- second on. {limit} is the clause that bounds them, and {end} is nothing or a row
-- with the end of the log.
-- name: listed_terms
SELECT t.n - 1 AS n, p.position, p.list
FROM unnest(string_to_array(?, chr(31)) COLLATE "C", CAST(string_to_array(?, ',') AS BIGINT[])) WITH ORDINALITY AS t(term, start, n)
CROSS JOIN LATERAL (
    SELECT e.position, e.list
    FROM event_postings AS e
    WHERE e.term = t.term AND e.position >= coalesce((
        SELECT max(b.position) FROM event_postings AS b WHERE b.term = t.term AND b.position <= t.start
    ), 0)
    ORDER BY e.position{limit}
) AS p{end};

-- name: listed_terms_backwards
SELECT t.n - 1 AS n, p.position, p.list
FROM unnest(string_to_array(?, chr(31)) COLLATE "C", CAST(string_to_array(?, ',') AS BIGINT[])) WITH ORDINALITY AS t(term, start, n)
CROSS JOIN LATERAL (
    SELECT e.position, e.list
    FROM event_postings AS e
    WHERE e.term = t.term AND e.position <= t.start
    ORDER BY e.position DESC{limit}
) AS p{end};
