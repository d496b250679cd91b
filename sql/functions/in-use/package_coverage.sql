-- How files tell whether a package is in use: `static_binary` where it is a part of a program, `file` where its files
-- are executed or loaded by themselves, as those of operating systems, and `interpreted` where another program reads
-- them or nothing is known of its kind. Types as Trivy, Grype and Syft spell them; `library` and `application` are those
-- of CycloneDX, where only the package URL tells the ecosystem.
create or replace function package_coverage(package_type text, package_class text, purl text) returns text
language sql immutable parallel safe
as $$
  select case
    when lower(package_type) in ('gobinary', 'rustbinary', 'rust-binary', 'go-module', 'binary') then 'static_binary'
    when lower(package_class) = 'os-pkgs'
      or package_class is null
         and (lower(package_type) in ('deb', 'dpkg', 'apk', 'rpm', 'alpm', 'pacman', 'portage', 'opkg', 'debian',
                                      'ubuntu', 'alpine', 'wolfi', 'chainguard', 'redhat', 'centos', 'rocky', 'alma',
                                      'fedora', 'amazon', 'oracle', 'photon', 'cbl-mariner', 'azurelinux')
              or coalesce(lower(package_type), 'library') in ('library', 'application')
                 and split_part(purl, '/', 1) in ('pkg:deb', 'pkg:apk', 'pkg:rpm', 'pkg:alpm', 'pkg:opkg')) then 'file'
    else 'interpreted' end
$$;
