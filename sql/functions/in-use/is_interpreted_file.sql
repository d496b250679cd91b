-- Whether another program reads a file, so that it is in use without being executed or loaded: archives and classes of
-- Java, sources and compiled files of languages.
create or replace function is_interpreted_file(path text) returns boolean
language sql immutable parallel safe
as $$
  select split_part(path, '.', -1) in (
    'jar', 'war', 'ear', 'class', 'py', 'pyc', 'egg', 'js', 'mjs', 'cjs', 'rb', 'pl', 'pm', 'php', 'phar', 'lua', 'tcl',
    'beam', 'dll')
$$;
