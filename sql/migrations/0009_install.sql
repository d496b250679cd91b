-- The version check sends the random `install_id` and stores its last answer in `latest`. The table has one row.
create table install (
  is_only    boolean   primary key default true check (is_only),
  install_id uuid      not null,
  created_at timestamp not null,
  latest     json,
  checked_at timestamp,
  claimed_at timestamp
);

insert into install (install_id, created_at) values (gen_random_uuid(), now() at time zone 'utc');
