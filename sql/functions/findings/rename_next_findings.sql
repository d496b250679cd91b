-- Checks the next ids that are aliases, or that findings were posted under and are stored differently; renames the
-- findings of the first payload that has a wrong id. One payload per call, so that only one payload lock is held.
-- `last` is where to continue, null at the end. A finding is judged by the id that it was posted under: by that alone
-- it is renamed, so any other id would be found wrong again and again.
create or replace function rename_next_findings(after text, max_names bigint)
returns table (payloads bigint, last text)
language plpgsql strict
set enable_nestloop = on
set enable_hashjoin = off
set enable_seqscan = off
as $$
declare
  names  text[];
  wrong  record;
begin
  names := array(
    select n.name
    from ((select distinct upper(a.alias) as name from cve_alias a where upper(a.alias) > after order by 1
           limit max_names)
          union
          (select distinct s.name from finding_sent s where s.name > after order by 1 limit max_names)) n
    order by n.name collate "C"
    limit max_names);

  select n.name, p.digest, p.source into wrong
  from (select n.name, canonical_id(n.name) as canonical, n.nth
        from unnest(names) with ordinality n(name, nth) offset 0) n
  cross join lateral (
    (select f.digest, f.source
     from image_finding f
     where n.canonical is not null and upper(f.vuln_id) = n.name and may_be_renamed(f.vuln_id, f.aliases)
       and not exists (
         select from finding_sent s
         where s.digest = f.digest and s.source = f.source and s.vuln_id = f.vuln_id
           and s.package_name = f.package_name and s.installed_version = f.installed_version)
     limit 1)
    union all
    (select s.digest, s.source
     from finding_sent s
     where s.name = n.name and upper(s.vuln_id) <> upper(coalesce(n.canonical, n.name))
     limit 1)) p
  order by n.nth
  limit 1;

  payloads := 0;
  last := case when cardinality(names) = max_names then names[max_names] end;
  if wrong.name is not null then
    last := wrong.name;
    if rename_findings(wrong.digest, wrong.source) then
      payloads := 1;
      last := coalesce((select max(n.name collate "C") from unnest(names) n(name)
                        where n.name collate "C" < wrong.name), after);
    end if;
  end if;
  return next;
end
$$;
