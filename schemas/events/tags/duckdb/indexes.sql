-- DuckDB: an index of one column; see tables.sql.
-- Serves: events with one tag or of one type
CREATE INDEX event_postings_term ON event_postings (term);
