-- Syscalls by pod: the names in the order they were first seen, as one text, since that is how they are read.
create table pod_syscalls (
  pod_name      text collate "C" primary key,
  pod_namespace text not null,
  syscalls      text not null,
  arch          text not null,
  time_stamp    timestamp not null
) with (fillfactor = 70);
