-- Waiting syscalls of which some found no room: their pod is then not complete.
alter table unattributed_syscalls add column is_cut boolean not null default false;
