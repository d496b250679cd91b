-- The packages of `unread_payloads`, as `package_entry` has them: those whose name or artifact
-- begins with the text; with `is_purl`, those whose package URL does, and those without one that have one of the names.
create or replace function unread_packages(asked text, is_purl boolean, names text[])
returns table (digest text, source text, kind text, name text, artifact text, purl text)
language sql stable parallel safe
as $$
  select r.digest, r.source, r.kind, c.name, artifact_of(c.name), coalesce(purl_base(c.purl), '')
  from unread_payloads() r
  cross join lateral (
    select c.name, c.purl
    from (select lower(c.name collate "C") as name, c.purl
          from image_component c
          where r.kind = 'sbom' and c.digest = r.digest and c.source = r.source
          union all
          select lower(f.package_name), f.package_purl
          from image_finding f
          where r.kind = 'vulnerabilities' and f.digest = r.digest and f.source = r.source
          offset 0) c
    where case when not is_purl then starts_with(c.name, asked)
                                     or strpos(c.name, ':') > 0 and starts_with(artifact_of(c.name), asked)
               when c.purl is null then c.name = any (names) or artifact_of(c.name) = any (names)
               else starts_with(purl_plain(c.purl), asked) end
    offset 0) c
$$;
