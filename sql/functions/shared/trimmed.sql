-- Text without leading and trailing white space, by JavaScript's definition of white space: the broker decides with
-- `String.trim()` whether a name is blank.
create or replace function trimmed(words text) returns text
language sql immutable parallel safe
as $$
  select btrim(words, E' \t\n\u000b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a'
                      '\u2028\u2029\u202f\u205f\u3000\ufeff')
$$;
