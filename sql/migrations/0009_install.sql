-- The random id under which this installation asks for releases, and the last answer. One row.
create table install (
  is_only    boolean   primary key default true check (is_only),
  install_id uuid      not null,
  created_at timestamp not null,
  latest     json,
  checked_at timestamp,
  claimed_at timestamp
);

insert into install (install_id, created_at) values (gen_random_uuid(), now() at time zone 'utc');
