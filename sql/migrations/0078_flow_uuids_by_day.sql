-- no-transaction: A uuid is unique on the day of its flow, not for ever: agents choose uuids at random, so each new one
-- has a place of its own among those of all flows, and with tens of millions of flows that is a page to read and to
-- write, whole, to the log. Those of one day lie together.
create unique index concurrently if not exists traffic_uuid_of_day on traffic ((time_stamp::date), uuid);
