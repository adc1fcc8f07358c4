-- Postgres: readers plan each query for its arguments, which suits queries over
-- attributes. Here the best plan is the same for all users and resources, and to
-- plan a check takes longer than to run it. The setting ends with the read view;
-- servers of other makes may not know it.
-- name: begin_read
SELECT set_config('plan_cache_mode', 'force_generic_plan', true)
WHERE current_setting('plan_cache_mode', true) IS NOT NULL;
