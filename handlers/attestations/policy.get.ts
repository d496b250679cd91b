import { z } from 'zod'
import {
  generate,
  INITIAL_BYTES,
  MAX_CONTAINERS,
  MAX_POLICY_BYTES,
  planOf,
  readCoverage,
  requireFullCoverage,
  requireNoOtherNamespaces,
} from '../../lib/admission/index.ts'
import { access, charge, clientLeft, filter, kib, query, route, saysYes, sendJson } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { POLICY_FORMAT_NAMES, policyFormatNamed, toWirePolicyFormat } from '../../lib/wire-names/index.ts'

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
          '`audit` reports images that do not comply, `enforce` denies them; empty is `audit`. `native` has no ' +
          '`enforce`.',
      },
    ),
    namespace: filter(
      'Only images that run in this namespace, in policies that bind this namespace alone if the engine can',
    ),
    acknowledgePartial: documentedAs(z.string().default('').transform(saysYes), {
      type: 'string',
      default: 'false',
      description:
        '`true`, `1`, `yes` or `on`: generate an enforcing policy although some running images are not covered.',
    }),
    acknowledgeClusterWide: documentedAs(z.string().default('').transform(saysYes), {
      type: 'string',
      default: 'false',
      description:
        '`true`, `1`, `yes` or `on`: generate an enforcing policy of policy-controller, which binds the whole ' +
        'cluster, although other namespaces run images of the same names.',
    }),
  })
  .refine(({ format, mode }) => format !== 'native' || !mode, {
    path: ['mode'],
    message: 'the evaluator enforces nothing: expected audit',
  })

/** GET /attestations/policy: admission policies from the signers of the running images (docs/contract.md#policies). */
export default route({
  summary: 'Generate admission policies from the signers of the running images',
  description:
    'A repository is covered if each of its running images is verified. Signers were observed, not vetted: comments' +
    ' above the policies list each identity for review, and each repository that is not covered, with the reason. ' +
    'The same state gives the same text. With `namespace`, policies for Kyverno match that namespace alone; ' +
    'policies for policy-controller bind the whole cluster, accept the signers of images of the same names in other' +
    ' namespaces, and say so in a comment.',
  answer: { contentType: CONTENT_TYPE, schema: z.string() },
  also: {
    409:
      'An enforcing policy would not cover every running image; the text lists the repositories and the reasons, ' +
      'and `acknowledgePartial=true` generates it anyway. Or a policy of policy-controller for one namespace would ' +
      'bind other namespaces that run images of the same names; the text lists them, and ' +
      '`acknowledgeClusterWide=true` generates it anyway.',
    422:
      `More than ${MAX_CONTAINERS} containers run, or the policies would be longer than ${MAX_POLICY_BYTES} bytes: ` +
      `ask for one namespace.`,
  },
}).get(
  '/attestations/policy',
  access('read'),
  query(Query, { unknown: 'ignored' }),
  charge(kib(INITIAL_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { format, mode: isEnforced, namespace, acknowledgePartial, acknowledgeClusterWide } = c.req.valid('query')
    const scope = {
      namespace,
      isClusterWide: format === 'policy-engine-b',
      windowSecs: config.imageRunningWindowSecs,
      retentionDays: config.attestationRetentionDays,
    }
    const reserve = (bytes: number) => c.get('share')?.grow(INITIAL_BYTES + bytes)
    const coverage = await readCoverage(db.read, scope, reserve, clientLeft(c))
    // The plan holds another copy of each container, signer and digest.
    const plannedBytes = 2 * coverage.estimatedBytes
    await reserve(plannedBytes)
    const plan = await planOf(coverage)
    if (isEnforced && !acknowledgePartial) requireFullCoverage(plan)
    if (isEnforced && !acknowledgeClusterWide) requireNoOtherNamespaces(plan)
    const wireFormat = toWirePolicyFormat(format, config.wireNames)
    const options = { format, wireFormat, isEnforced, namespace, annotationPrefix: config.annotationPrefix }
    const policies = await generate(plan, options, (bytes) => reserve(plannedBytes + bytes))
    return sendJson(c, policies, { 'content-type': CONTENT_TYPE })
  },
)
