-- no-transaction: The report of coverage looks for findings whose lists were cut, which are few among all. The index
-- has no other column, and no row enters it later: findings are replaced, not changed.
create index concurrently if not exists image_finding_cut
  on image_finding (digest, source)
  where omitted > 0;
