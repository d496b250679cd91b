-- The position of a tier in lists (0 P0, 2 P1, 3 P2, 4 Background; 1 is for vulnerabilities that are not counted yet),
-- the first rule that applies (docs/contract.md#tiers). `is_live`: it may be in use; `is_hot`: it is known or likely to
-- be exploited, null if nothing is known.
create or replace function tier_of(is_live boolean, severity integer, is_fixable boolean, is_hot boolean,
                                   is_exposed boolean) returns smallint
language sql immutable parallel safe
as $$
  select (case
    when not is_live then 4
    when is_hot then case when is_exposed then 0 else 2 end
    when severity = 1 and not is_fixable and not is_exposed then 3
    when severity <= 1 then 2
    else 3 end)::smallint
$$;
