-- Serves: events of one type in order of position
CREATE INDEX events_type ON events (type, position);
