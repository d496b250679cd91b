-- The files that reports and SBOMs of images list for packages; `image` is the position in `images`. `is_cut`: more
-- files may belong to the package, since 16 are taken of each entry, and 1 024 bytes of a path, and since a program
-- that Syft recognised (type `binary`) has only the file that told. Databases of package managers, lists of modules and
-- documentation are not among them, below any directory: scanners name these as the place where they found a package.
-- A document of a full list is a row without a path, which says that more files may belong to the package.
create or replace function package_files(images text[])
returns table (image bigint, package_name text, path text, is_cut boolean)
language sql stable
as $$
  -- "offset 0" has each path made normal once.
  select l.image, l.package_name, case when not d.is_document then l.path end, l.is_cut
  from (
    select p.image, p.package_name, normal_path(p.path) as path, p.is_cut or octet_length(p.path) > 1020 as is_cut,
           p.is_full
    from (
      select i.image, c.name collate "C" as package_name, unnest(c.file_paths) as path,
             cardinality(c.file_paths) >= 16 or lower(c.type) is not distinct from 'binary' as is_cut,
             cardinality(c.file_paths) >= 16 as is_full
      from unnest(images) with ordinality i(digest, image)
      cross join lateral (select e.* from answering_reports(i.digest, 'sbom') e where e.join_rank < 4 offset 0) p
      cross join lateral (
        select c.name, c.type, c.file_paths
        from image_component c
        where c.digest = p.digest and c.source = p.source and c.file_paths <> '{}' offset 0) c
      union all
      select i.image, r.package_name, unnest(r.file_paths),
             cardinality(r.file_paths) >= 16 or r.omitted > 0 or lower(r.package_type) is not distinct from 'binary',
             cardinality(r.file_paths) >= 16
      from unnest(images) with ordinality i(digest, image)
      cross join lateral (
        select e.* from answering_reports(i.digest, 'vulnerabilities') e where e.join_rank < 4 offset 0) p
      cross join lateral (
        select r.package_name, r.package_type, r.file_paths, r.omitted
        from image_finding r
        where r.digest = p.digest and r.source = p.source and r.file_paths <> '{}' offset 0) r) p
    offset 0) l
  cross join lateral (
    select strpos(l.path, '/usr/share/doc/') > 0 or strpos(l.path, '/usr/share/licenses/') > 0 as is_document) d
  where split_part(l.path, '/', -1) not in ('go.mod', 'go.sum', 'Cargo.lock', 'Cargo.toml', 'release')
    and not (strpos(l.path, '/lib/') > 0
             and (strpos(l.path, '/var/lib/dpkg/') > 0 or strpos(l.path, '/var/lib/rpm/') > 0
                  or strpos(l.path, '/var/lib/rpmmanifest/') > 0 or strpos(l.path, '/var/lib/pacman/') > 0
                  or strpos(l.path, '/lib/apk/') > 0 or strpos(l.path, '/lib/opkg/') > 0
                  or strpos(l.path, '/lib/sysimage/') > 0))
    and strpos(l.path, '/usr/share/rpm/') = 0 and strpos(l.path, '/var/db/pkg/') = 0
    and (l.is_full or not d.is_document)
$$;
