-- Deletes those of these sets of profile files that no node has, with their files; returns how many. A node about to
-- take a set holds its header lock: such a set is skipped and stays. Nodes are checked again under the lock, so a set
-- assigned meanwhile stays and a later assignment waits.
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
