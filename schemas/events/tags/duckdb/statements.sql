-- DuckDB: a scan of one column is faster than halving, which it cannot correlate.
-- name: first_since
SELECT coalesce(min(position), 0) FROM events WHERE time >= ?;

-- A condition: the positions are one argument, as "{1,2,3}", because a long list
-- takes longer to plan than to run.
-- name: listed_positions
IN (SELECT unnest(CAST(string_split(trim(?, '{}'), ',') AS BIGINT[])));

-- The first {rows} rows of each term in the first argument, from its position in
-- the second on. All rows of the terms are read, because no index returns them in
-- order. {end} is nothing or a row with the end of the log.
-- name: listed_terms
SELECT n, position, list
FROM (
    SELECT n, position, list, row_number() OVER (PARTITION BY n ORDER BY position) AS r
    FROM (
        SELECT t.n, e.position, e.list,
            coalesce(lead(e.position) OVER (PARTITION BY t.n ORDER BY e.position) > t.start, TRUE) AS wanted
        FROM (
            SELECT unnest(range(len(string_split(a.terms, chr(31))))) AS n,
                unnest(string_split(a.terms, chr(31))) AS term,
                unnest(CAST(string_split(a.starts, ',') AS BIGINT[])) AS start
            FROM (SELECT CAST(? AS VARCHAR) AS terms, CAST(? AS VARCHAR) AS starts) AS a
        ) AS t
        JOIN event_postings AS e ON e.term = t.term
    ) AS x
    WHERE wanted
) AS y
WHERE r <= {rows}{end}
ORDER BY n, position;

-- name: listed_terms_backwards
SELECT n, position, list
FROM (
    SELECT n, position, list, row_number() OVER (PARTITION BY n ORDER BY position DESC) AS r
    FROM (
        SELECT t.n, e.position, e.list, e.position <= t.start AS wanted
        FROM (
            SELECT unnest(range(len(string_split(a.terms, chr(31))))) AS n,
                unnest(string_split(a.terms, chr(31))) AS term,
                unnest(CAST(string_split(a.starts, ',') AS BIGINT[])) AS start
            FROM (SELECT CAST(? AS VARCHAR) AS terms, CAST(? AS VARCHAR) AS starts) AS a
        ) AS t
        JOIN event_postings AS e ON e.term = t.term
    ) AS x
    WHERE wanted
) AS y
WHERE r <= {rows}{end}
ORDER BY n, position DESC;
