-- Deletes those of these sets of profile files that no node has, with their files, and answers how many. Who is about to have one holds its
-- header, and is waited for by nobody: it stays then. It looks again with the others locked: a node that was given one since is seen then, and one
-- that is given it later waits.
create or replace function drop_file_sets(ids bytea[]) returns integer
language plpgsql
as $$
declare
  locked bytea[];
  removed integer;
begin
  locked := array(select s.id from seccomp_file_set s where s.id = any (ids) order by s.id for update skip locked);
  delete from seccomp_file_set s
  where s.id = any (locked) and (select 1 from seccomp_node n where n.file_set_id = s.id limit 1) is null;
  get diagnostics removed = row_count;
  return removed;
end
$$;
