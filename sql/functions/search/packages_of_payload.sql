-- The numbers of the packages of a payload, if the job has read them; those of an SBOM by position.
create or replace function packages_of_payload(of_digest text, of_source text, of_kind text)
returns table (packages bigint[])
language sql stable parallel safe
as $$
  select p.packages
  from payload_packages p
  where p.digest = of_digest and p.source = of_source and p.kind = of_kind
    and (p.is_in_order or p.kind <> 'sbom')
    and exists (select from image_report r
                where r.digest = p.digest and r.source = p.source and r.kind = p.kind
                  and r.packages_hash = r.content_hash)
$$;
