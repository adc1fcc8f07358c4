-- DuckDB: an index of one column, and none on types: events of one type are too
-- many for an index to help, and the column compresses to a dictionary.
-- Serves: events with one tag
CREATE INDEX event_tags_tag ON event_tags (tag);
