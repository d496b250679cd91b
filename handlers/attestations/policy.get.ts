import { z } from 'zod'
import {
  FIRST_BYTES,
  generate,
  MAX_CONTAINERS,
  MAX_POLICY_BYTES,
  planOf,
  readCoverage,
  requireAlone,
  requireWhole,
} from '../../lib/admission/index.ts'
import { access, charge, clientLeft, filter, kib, query, route, saysYes, sendJson } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { POLICY_FORMAT_NAMES, policyFormatNamed, shownPolicyFormat } from '../../lib/supply-chain/index.ts'

const CONTENT_TYPE = 'application/yaml'

const Query = z
  .object({
    format: documentedAs(
      z
        .string()
        .default('policy-engine-a')
        .transform((name, c) => {
          const format = policyFormatNamed(name.trim())
          if (format !== undefined) return format
          c.addIssue({ code: 'custom', message: `expected one of ${POLICY_FORMAT_NAMES.join(', ')}` })
          return z.NEVER
        }),
      {
        type: 'string',
        enum: POLICY_FORMAT_NAMES,
        default: 'policy-engine-a',
        description: 'The engine that the policies are for: Kyverno, policy-controller of sigstore, or the evaluator.',
      },
    ),
    mode: documentedAs(
      z
        .enum(['audit', '', 'enforce'], 'expected audit or enforce')
        .transform((mode) => mode === 'enforce')
        .default(false),
      {
        type: 'string',
        enum: ['audit', '', 'enforce'],
        default: 'audit',
        description:
          'Whether images that do not comply are only told of, or denied; empty is `audit`. Not `enforce` for `native`.',
      },
    ),
    namespace: filter(
      'Only images that containers of this namespace run, in policies that bind this namespace alone where their engine can',
    ),
    acknowledgePartial: documentedAs(z.string().default('').transform(saysYes), {
      type: 'string',
      default: 'false',
      description: '`true`, `1`, `yes` or `on`: enforce although some running images are not covered.',
    }),
    acknowledgeClusterWide: documentedAs(z.string().default('').transform(saysYes), {
      type: 'string',
      default: 'false',
      description:
        '`true`, `1`, `yes` or `on`: enforce a policy of policy-controller, which has no namespace, although other namespaces run images of the same names.',
    }),
  })
  .refine(({ format, mode }) => format !== 'native' || !mode, {
    path: ['mode'],
    message: 'the evaluator enforces nothing: expected audit',
  })

/** GET /attestations/policy: admission policies of what running images are signed by (interop-supply-chain, section 4). */
export default route({
  summary: 'Admission policies for the images that run, by who signed them',
  description:
    'A repository is covered when each of its running images verified. Who signed was observed, not vetted: comments above the policies name each identity, for review, and each repository that is not covered, with the reason. The same state gives the same text. With `namespace`, Kyverno is given policies that match that namespace alone; those of policy-controller bind the whole cluster, accept who signed images of the same names elsewhere, and say so.',
  answer: { contentType: CONTENT_TYPE, schema: z.string() },
  also: {
    409: 'A policy that enforces would not cover every running image; the text names each repository and why. `acknowledgePartial=true` generates it all the same. Or one of policy-controller, made for a namespace, would bind others that run images of the same names; the text names them. `acknowledgeClusterWide=true` generates it all the same.',
    422: `More than ${MAX_CONTAINERS} containers run, or the policies would be longer than ${MAX_POLICY_BYTES} bytes: ask for one namespace.`,
  },
}).get(
  '/attestations/policy',
  access('read'),
  query(Query, { unknown: 'ignored' }),
  charge(kib(FIRST_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { format, mode: isEnforced, namespace, acknowledgePartial, acknowledgeClusterWide } = c.req.valid('query')
    const scope = {
      namespace,
      isClusterWide: format === 'policy-engine-b',
      windowSecs: config.imageRunningWindowSecs,
      retentionDays: config.attestationRetentionDays,
    }
    const hold = (bytes: number) => c.get('share')?.grow(FIRST_BYTES + bytes)
    const coverage = await readCoverage(db.read, scope, hold, clientLeft(c))
    // The plan has of each container, signer and digest one more.
    const plannedBytes = 2 * coverage.heldBytes
    await hold(plannedBytes)
    const plan = await planOf(coverage)
    if (isEnforced && !acknowledgePartial) requireWhole(plan)
    if (isEnforced && !acknowledgeClusterWide) requireAlone(plan)
    const shownFormat = shownPolicyFormat(format, config.wireNames)
    const options = { format, shownFormat, isEnforced, namespace, annotationPrefix: config.annotationPrefix }
    const policies = await generate(plan, options, (bytes) => hold(plannedBytes + bytes))
    return sendJson(c, policies, { 'content-type': CONTENT_TYPE })
  },
)
