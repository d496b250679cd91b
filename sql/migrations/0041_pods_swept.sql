-- When a pod was marked dead because nobody posted it any more: nobody said that it ended. Null where it never was.
alter table pod add column swept_at timestamp;
