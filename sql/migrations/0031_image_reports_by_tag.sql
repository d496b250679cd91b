-- no-transaction: Reads look up retired guesses by the repository and the tag of an image.
create index concurrently if not exists image_report_by_tag on image_report (normal_repository, tag, source, kind)
  where normal_repository is not null and tag is not null;
