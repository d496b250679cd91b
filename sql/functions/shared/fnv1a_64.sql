-- FNV-1a, 64 bits, over the UTF-8 bytes of a text, as 16 hexadecimal digits (draft-eastlake-fnv, section 6). The prime
-- is 2^40 + 435. PostgreSQL has no arithmetic modulo 2^64, so both halves are multiplied separately; the lower half
-- never depends on the upper. The loop takes three bytes a step, because the number of statements decides the speed;
-- after three bytes the upper half is just below 2^60.
create or replace function fnv1a_64(words text) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  bytes  bytea   := convert_to(words, 'UTF8');
  whole  integer := length(bytes) / 3 * 3;
  upper  bigint  := x'cbf29ce4'::bigint;
  lower  bigint  := x'84222325'::bigint;
  second bigint;
  third  bigint;
begin
  for i in 0 .. whole - 3 by 3 loop
    lower  := lower # get_byte(bytes, i);
    second := (lower * 435 & 4294967295) # get_byte(bytes, i + 1);
    third  := (second * 435 & 4294967295) # get_byte(bytes, i + 2);
    upper  := (((upper * 435 + (lower * 435 >> 32) + (lower << 8)) * 435 + (second * 435 >> 32) + (second << 8)) * 435
               + (third * 435 >> 32) + (third << 8)) & 4294967295;
    lower  := third * 435 & 4294967295;
  end loop;
  for i in whole .. length(bytes) - 1 loop
    lower := lower # get_byte(bytes, i);
    upper := (upper * 435 + (lower * 435 >> 32) + (lower << 8)) & 4294967295;
    lower := lower * 435 & 4294967295;
  end loop;
  return lpad(to_hex(upper), 8, '0') || lpad(to_hex(lower), 8, '0');
end
$$;
