-- A stored address as inet, null where the text is none: stored addresses may be any text. The patterns admit only what
-- the cast accepts (IPv4 without leading zeros, no zones).
create or replace function inet_of(address text) returns inet
language sql immutable parallel safe
as $$
  select case
    when address ~ '^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}'
                   '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$'
      or address ~* '^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$'
      or address ~* '^(?=(?:[^:]*:){2,7}[^:]*$)'
                    '(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*)?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*)?$'
      then address::inet end
$$;
