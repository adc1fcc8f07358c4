-- Serves: events with all of some tags
CREATE INDEX events_tag_array ON events USING gin (tag_array);

-- Serves: events of one type in order of position
CREATE INDEX events_type ON events (type, position);
