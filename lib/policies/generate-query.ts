/** The query of the routes that make policies (docs/contract.md#network-policies). */
import { z } from 'zod'
import { moment } from '../flows/index.ts'
import { saysYes } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'

const MAX_MIN_DAYS = 365

export const GenerateQuery = z.object({
  format: z
    .enum(['kubernetes', 'cilium'], 'expected kubernetes or cilium')
    .default('kubernetes')
    .describe('`kubernetes`: NetworkPolicy of networking.k8s.io/v1; `cilium`: CiliumNetworkPolicy of cilium.io/v2.'),
  direction: z
    .enum(['both', 'ingress', 'egress'], 'expected both, ingress or egress')
    .default('both')
    .describe('The directions in which the policy isolates the pods.'),
  since: moment('From edges that had a new flow at this time or later'),
  min_days: documentedAs(
    z
      .string()
      .regex(/^\d{1,3}$/, `expected 0 to ${MAX_MIN_DAYS}`)
      .transform(Number)
      .refine((days) => days <= MAX_MIN_DAYS, `expected 0 to ${MAX_MIN_DAYS}`)
      .default(7),
    {
      ...{ type: 'integer', minimum: 0, maximum: MAX_MIN_DAYS, default: 7 },
      description: 'Days that the workload has to have been observed.',
    },
  ),
  cidr: z
    .enum(['exact', '24'], 'expected exact or 24')
    .default('exact')
    .describe('Addresses one by one, or by networks of 24 bits, of 64 for IPv6.'),
  output: z.enum(['yaml', 'json'], 'expected yaml or json').default('yaml').describe('The notation of the answer.'),
  acknowledgePartial: documentedAs(z.string().default('').transform(saysYes), {
    ...{ type: 'string', default: 'false' },
    description: '`true`, `1`, `yes` or `on`: a policy is made although what it is made from is not complete.',
  }),
})
export type GenerateQuery = z.output<typeof GenerateQuery>
