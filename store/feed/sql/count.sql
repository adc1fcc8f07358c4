-- How many entities there are, to know that all were read.
SELECT COUNT(*)
FROM payloads
