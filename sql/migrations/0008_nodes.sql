-- `node_heartbeat` has the latest heartbeat of each node's agent, `node_facts` the platform that agents report.
create table node_heartbeat (
  node_name  text collate "C" primary key,
  updated_at timestamp not null
) with (fillfactor = 70);

create table node_facts (
  node_name          text collate "C" primary key,
  provider           text collate "C" not null,
  distro             text collate "C" not null,
  cni                text collate "C" not null,
  ip_family          text collate "C" not null,
  node_os            text collate "C" not null,
  policy_enforcement text collate "C" check (policy_enforcement in ('enforced', 'unenforced', 'unknown')),
  time_stamp         timestamp not null
) with (fillfactor = 80);
