-- Whether an IPv6 address, or an IPv4 address mapped into IPv6, is routable on the internet: it lies in no range
-- reserved for private networks, loopback, link-local, multicast, documentation or future use.
create or replace function is_public_ip(address inet) returns boolean
language sql immutable parallel safe
as $$
  select not address <<= any (array[
    '::ffff:0.0.0.0/104', '::ffff:10.0.0.0/104', '::ffff:100.64.0.0/106', '::ffff:127.0.0.0/104',
    '::ffff:169.254.0.0/112',
    '::ffff:172.16.0.0/108', '::ffff:192.0.2.0/120', '::ffff:192.168.0.0/112', '::ffff:198.51.100.0/120',
    '::ffff:203.0.113.0/120',
    '::ffff:224.0.0.0/100', '::ffff:240.0.0.0/100',
    '::/127', 'fc00::/7', 'fe80::/10', 'ff00::/8', '2001:db8::/32', '3fff::/20']::inet[])
$$;
