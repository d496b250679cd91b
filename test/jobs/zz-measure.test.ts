import { test } from 'node:test'
import { lateResolve } from '/work/main/jobs/late-resolve.ts'
import { staleSweep } from '/work/main/jobs/stale-sweep.ts'
import { startScene } from '/work/main/test/jobs/scene.ts'
const STMT = `with held as materialized (select pg_try_advisory_xact_lock(1,2) as is_held), candidate as materialized (select * from (select t.ctid as place, t.uuid, t.time_stamp, t.traffic_in_out_ip from traffic t where t.peer_kind is null and t.traffic_in_out_ip is not null and t.time_stamp >= now() at time zone 'utc' - make_interval(secs => 600) and (t.time_stamp, t.uuid) > ('2020-01-01'::timestamp, '') order by t.time_stamp, t.uuid limit 1000) c where (select is_held from held)) 
  update traffic t set peer_name = r.name, peer_kind = 'pod' from (select c.place, coalesce(p.pod_name, s.svc_name) as name from candidate c left join lateral pod_holding(c.traffic_in_out_ip, c.time_stamp) p on true left join service s on p.pod_name is null and s.svc_ip = c.traffic_in_out_ip where p.pod_name is not null or s.svc_ip is not null) r where t.ctid = r.place and t.peer_kind is null`
const scene = await startScene(lateResolve)
const { sql, ago, run } = scene
test('measure', async () => {
  const docs = Array.from({ length: 2000 }, (_, i) => ({ pod_name: `p${i}`, pod_ip: `10.1.${i >> 8}.${i & 255}`, pod_ips: [`10.1.${i >> 8}.${i & 255}`], pod_namespace: 'a', time_stamp: ago(0), node_name: `n${i % 20}`, is_dead: false, started_at: ago(3600), workload_kind: 'Deployment', workload_name: 'w', pod_uid: 'u' }))
  await sql`select upsert_pods(${JSON.stringify(docs)}::text::json)`
  async function load(n: number, secs: number, resolvable: boolean) {
    await sql`insert into traffic (uuid, pod_name, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port, decision, time_stamp, peer_kind)
      select gen_random_uuid()::text, 'seen', '10.0.0.1', (i + ${secs}::bigint * 1000000)::text, 'TCP', 'EGRESS', format('10.1.%s.%s', (i % 2000) / 256, (i % 2000) % 256), (i)::text, 'ALLOW', ${ago(secs)}::text::timestamp + i * interval '1 microsecond', ${resolvable ? null : 'pod'}::text from generate_series(1, ${n}::int) i`
  }
  const show = async (what: string) => { const t = performance.now(); const r = await run(); console.log(what, r, Math.round(performance.now() - t), 'ms') }
  await load(20000, 100, true); await show('20k fresh, never analyzed')
  await load(20000, 200, true); 
  for (const mode of [] as string[]) { if (mode === 'analyzed') await sql`analyze`
  const an = await sql.unsafe(`explain (analyze, buffers, costs off) ${STMT}`); console.log(mode, an.map((r: any) => r['QUERY PLAN']).join('\n')) }
  await show('20k again')
  await load(300000, 5000, false); await load(300000, 300, false); await sql`analyze`
  await load(20000, 110, true); await show('20k, 300k stamped in the window, 300k older')
  await show('nothing to stamp, 340k in window')
  await load(20000, 90, true); await sql`update traffic set traffic_in_out_ip = '192.0.2.' || (pod_port::bigint % 200) where peer_kind is null`; await show('20k external')
  // the sweep
  await sql`insert into pod (pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips, pod_obj) select 's' || i, '10.2.0.0', ${ago(1)}::text::timestamp, 'n' || i % 300, false, '{}', ('{"a":"' || repeat('x', 600) || '"}')::json from generate_series(1, 50000) i`
  let t = performance.now(); let r = await staleSweep.run(scene.context()); console.log('sweep 52k alive, none stale', r, Math.round(performance.now() - t))
  await sql`update pod set time_stamp = time_stamp - interval '1 day' where pod_name like 's%' and substr(pod_name, 2)::bigint % 5 = 0`
  t = performance.now(); r = await staleSweep.run(scene.context()); console.log('sweep 10k stale of 52k', r, Math.round(performance.now() - t))
  t = performance.now(); r = await staleSweep.run(scene.context()); console.log('sweep none again', r, Math.round(performance.now() - t))
})

