-- The migration that the schema is at. The casts take away the declared types,
-- of which drivers make Go types of their own.
SELECT CAST(version AS INTEGER), CAST(dirty AS INTEGER)
FROM schema_migrations
