-- Gives a node the set of files with that id, which is stored first where it is not there, and deletes the set it had when no other node has it.
-- Locks are taken in three steps, each of which waits for those of the same or a later step only: the header of the new set, shared; the
-- node; the header of the old set, against others who leave it, so that the last of them sees that he is.
-- These locks keep a set from going while a node is given it. Where it goes or comes all the same, the foreign key refuses the statement, which has
-- then written nothing and is right when it is done anew: a set that is gone is stored again, and one that a node has by now stays.
create or replace function post_node_files(node text, set_id bytea, doc json) returns void
language plpgsql
as $$
declare
  max_attempts constant integer := 3;
  attempt integer := 1;
  is_new boolean;
  old_id bytea;
begin
  <<attempts>>
  loop
    begin
      loop
        insert into seccomp_file_set (id) values (set_id) on conflict do nothing;
        is_new := found;
        exit when is_new;
        perform from seccomp_file_set where id = set_id for key share;
        exit when found; -- or it was deleted in between
      end loop;

      if is_new then
        insert into seccomp_file (path, file_set_id, hash)
        select f.path, set_id, f.hash
        from json_to_record(doc) as d(paths text[], hashes text[])
        cross join lateral unnest(d.paths, d.hashes) as f(path, hash)
        order by f.path collate "C";
      end if;

      old_id := null;
      loop
        select n.file_set_id into old_id from seccomp_node n where n.node_name = node for update;
        if found then
          update seccomp_node n set file_set_id = set_id, updated_at = clock_timestamp() at time zone 'utc' where n.node_name = node;
          exit;
        end if;
        insert into seccomp_node values (node, set_id, clock_timestamp() at time zone 'utc') on conflict do nothing;
        exit when found;
      end loop;

      if old_id <> set_id then
        perform from seccomp_file_set where id = old_id for no key update;
        perform drop_file_sets(array[old_id]);
      end if;

      if is_new then
        -- Left by somebody while another was about to have it, who then failed: a rare thing, and so is a new set.
        perform drop_file_sets(array(
          select s.id from seccomp_file_set s where (select 1 from seccomp_node n where n.file_set_id = s.id limit 1) is null limit 8));
      end if;
      exit attempts;
    exception when foreign_key_violation then
      if attempt = max_attempts then
        raise;
      end if;
      attempt := attempt + 1;
      -- The text names the table on which it happened, and no value.
      raise log 'post_node_files, done anew: %', sqlerrm;
    end;
  end loop;
end
$$;
