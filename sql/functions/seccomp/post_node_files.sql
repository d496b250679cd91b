-- Assigns a set of profile files to a node, stores the set if it is new, and deletes the node's previous set if no
-- other node has it (docs/contract.md#seccomp-distribution). Locks are taken in three steps, each of which waits only
-- for the same or a later step: the new set's header, shared; the node; the old set's header, exclusive, so that the
-- last node to leave a set knows it is the last.
-- The locks keep a set from being deleted while a node takes it. If the foreign key is violated all the same, the block
-- is rolled back and repeated: it stores the set again, or leaves a set that a node has taken by now.
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
        exit when found; -- another session deleted it in between
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
          update seccomp_node n set file_set_id = set_id, updated_at = clock_timestamp() at time zone 'utc'
            where n.node_name = node;
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
        -- Sets without a node remain if the node that was about to take one failed. New sets are rare, so look for them
        -- here.
        perform drop_file_sets(array(
          select s.id from seccomp_file_set s
          where (select 1 from seccomp_node n where n.file_set_id = s.id limit 1) is null
          limit 8));
      end if;
      exit attempts;
    exception when foreign_key_violation then
      if attempt = max_attempts then
        raise;
      end if;
      attempt := attempt + 1;
      -- The message names the table and contains no value.
      raise log 'post_node_files is repeated: %', sqlerrm;
    end;
  end loop;
end
$$;
