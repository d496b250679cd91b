/**
 * The decision of a finding: of those that hold for its image, its vulnerability and its package, the most specific,
 * then the newest (docs/contract.md#decisions). It changes nothing else of the finding.
 */
import { z } from 'zod'
import { storedJson } from '../records/column-kinds.ts'
import { Decision } from './record.ts'

/** The fields of a finding about decisions. */
export const findingDecision = {
  decision: storedJson(Decision.nullable().describe('The most specific that holds anywhere; null without one.')),
  decided: z
    .boolean()
    .describe('Whether the finding is decided in every workload that has the image: no work is left on it.'),
}

/** SQL: CTEs with the decisions about these vulnerabilities in the image of `asked`, by vulnerability, and its workloads. */
export const decidedHere = (vulns: string) => `
  decided as materialized (
    select decisions_for_image(a.digest, ${vulns}) as known from asked a),
  decided_places as materialized (
    select distinct w.pod_namespace, w.workload_kind, w.workload_name
    from asked a join workload_container w on w.image_digest = a.digest)`

/** SQL: the columns `decision` and `decided` of the finding `m`, as one row; `package_purls` are those of its rows. */
export const decisionOf = (m: string) => `
  with c as materialized (
    select h.*
    from jsonb_to_recordset((select d.known -> ${m}.id from decided d))
      h(n bigint, id bigint, scope_rank smallint, pod_namespace text, workload_kind text, workload_name text,
        package_name text, package_purl text, is_settled boolean)
    where (h.package_name is null or h.package_name = ${m}.package_name)
      and (h.package_purl is null
           or (select bool_and(purl_matches(h.package_purl, u.purl)) from unnest(${m}.package_purls) u(purl))))
  select (select decision_shown(d) from vuln_decision d
          where d.id = (select c.id from c order by c.n limit 1)) as decision,
         coalesce(
           case when exists (select from c where c.scope_rank in (0, 2))
                then (select bool_and(coalesce((
                        select c.is_settled from c
                        where c.scope_rank in (1, 3)
                           or (c.pod_namespace = w.pod_namespace
                               and (c.scope_rank = 2
                                    or (c.workload_kind = w.workload_kind and c.workload_name = w.workload_name)))
                        order by c.n limit 1), false))
                      from decided_places w)
                else (select c.is_settled from c order by c.n limit 1) end, false) as decided`
