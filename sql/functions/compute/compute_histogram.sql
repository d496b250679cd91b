-- Histograms of usage (docs/contract.md#sizing-of-workloads). The bounds of buckets grow by 2^(1/16), so that the bound
-- is at most 4.43 % above any value in the bucket. Bucket 0 has the values below 1.

create or replace function compute_bucket(value float8) returns bigint
language sql immutable parallel safe
as $$ select case when value >= 1 then 1 + ceil(16 * ln(compute_clamped(value)) / ln(2::float8)) else 0 end::bigint $$;

-- The largest value of a bucket.
create or replace function compute_bucket_bound(bucket bigint) returns float8
language sql immutable parallel safe
return case when bucket <= 1 then 1 else power(2::float8, (bucket - 1) / 16.0::float8) end;

-- An element of a histogram: the bucket of a value, and the seconds for which it held.
create or replace function compute_bar(value float8, secs bigint) returns bigint
language sql immutable parallel safe
return (compute_bucket(value) << 32) + least(secs, 2147483647);

-- A histogram in order, with one element for each bucket.
create or replace function compute_histogram(bars bigint[]) returns bigint[]
language sql immutable parallel safe
return array(
  select (b.bucket << 32) + least(sum(b.secs), 2147483647)::bigint
  from (select a.bar >> 32 as bucket, a.bar & 4294967295 as secs from unnest(bars) a(bar)) b
  group by b.bucket
  order by b.bucket);
