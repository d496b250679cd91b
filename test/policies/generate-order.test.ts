/** The same facts make the same bytes: replicas read the rows of edges, pods and services in different orders. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { HttpError } from '../../lib/errors.ts'
import type { Connection, Facts, PodGroup, Service } from '../../lib/policies/facts.ts'
import { depth } from '../support/depth.ts'
import { facts } from './fact-values.ts'
import { jsonOf, pods, seen, service, yamlOf } from './generate-facts.ts'

/** Ends that the generated clusters lack: workloads that share all labels, services that do, and some without any. */
const TWINS: PodGroup[] = ['one', 'two'].map((name) => pods(`twins/Deployment/${name}`, { app: 'twin' }))
const SERVICES: Service[] = [
  service('twins/both', { app: 'twin' }, '80:8080'),
  service('twins/east', null, '80:8080'),
  service('twins/west', null, '80:8080'),
]
const DNS: PodGroup = pods('dns/DaemonSet/host', { app: 'dns' }, { isHostNetwork: true, ips: ['192.168.0.1'] })
const ENDS = [
  ...['twins/Deployment/one', 'twins/Deployment/two', 'service twins/both', 'service twins/east', 'service twins/west'],
  ...['dns/DaemonSet/host', 'pod twins/gone', 'external 93.184.216.34', 'unresolved 93.184.216.34', 'unresolved -'],
]
const others = (from: string): Connection[] =>
  ENDS.flatMap((to) => [
    seen(`${from} > ${to} ${to.startsWith('service') ? 80 : 8080}`),
    seen(`${from} > ${to} 81`, { isDropped: true }),
  ])

const withTwins = ({ pods: groups, services, connections }: Facts): Facts => {
  const { namespace, kind, name } = groups[0]!.workload
  return {
    pods: [...groups, ...TWINS, DNS],
    services: [...services, ...SERVICES],
    connections: [...connections, ...others(`${namespace}/${kind}/${name}`)],
  }
}

const shuffled = <T>(list: readonly T[]): fc.Arbitrary<T[]> =>
  fc.shuffledSubarray([...list], { minLength: list.length, maxLength: list.length })

test('the order of the facts changes no byte', async () => {
  const values = facts.map(withTwins).chain((known) =>
    fc.record({
      known: fc.constant(known),
      mixed: fc.record({
        pods: shuffled(known.pods),
        services: shuffled(known.services),
        connections: shuffled(known.connections),
      }),
      format: fc.constantFrom('kubernetes' as const, 'cilium' as const),
      cidr: fc.constantFrom('exact' as const, '24' as const),
    }),
  )
  await fc.assert(
    fc.asyncProperty(values, async ({ known, mixed, format, cidr }) => {
      const { namespace, kind, name } = known.pods[0]!.workload
      const text = async (one: Facts) => {
        const of = [`${namespace}/${kind}/${name}`, one, { format, cidr }] as const
        try {
          return [await yamlOf(...of), await jsonOf(...of)]
        } catch (error) {
          if (!(error instanceof HttpError)) throw error
          return [error.message]
        }
      }
      assert.deepEqual(await text(mixed), await text(known))
    }),
    { numRuns: depth(100, 2_000) },
  )
})
