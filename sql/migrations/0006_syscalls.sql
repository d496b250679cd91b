-- The syscalls of a pod are one text, in first-seen order, because reads return them in this form.
create table pod_syscalls (
  pod_name      text collate "C" primary key,
  pod_namespace text not null,
  syscalls      text not null,
  arch          text not null,
  time_stamp    timestamp not null
) with (fillfactor = 70);
