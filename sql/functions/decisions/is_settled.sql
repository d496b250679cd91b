-- Whether a decision ends the work on a finding: the other words say that work is left.
create or replace function is_settled(decision text) returns boolean
language sql immutable parallel safe
as $$
  select decision in ('accepted', 'not_affected', 'will_not_fix', 'fixed')
$$;
