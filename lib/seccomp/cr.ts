/**
 * Custom resources as the operator's controller sends them, and as the broker mirrors them
 * (docs/contract.md#seccomp-distribution).
 */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { NO_NULL_PATTERN, name, pathText, word } from '../http/request/fields.ts'
import { listOf } from '../http/request/first-fault.ts'
import { documentedAs } from '../openapi/declare.ts'
import {
  ALLOW_ACTION,
  DNS_NAME,
  foldedArchitecture,
  isDnsName,
  isSyscallName,
  LOG_ACTION,
  MAX_DNS_NAME_CHARS,
  SYSCALL_NAME,
} from './names.ts'

/** Most rules. A kernel has about 500 syscalls, and a resource may have a rule for each. */
export const MAX_RULES = 1_024
/** Most names in all allowing rules together. A kernel has about 500. */
export const MAX_NAMES = 4_096
const MAX_ARCHITECTURES = 64
const MAX_NODES = 2 ** 31 - 1

const NO_STATE = 'Pending'

const dnsName = (what: string) =>
  documentedAs(pathText.refine(isDnsName, 'expected a DNS-1123 name'), {
    type: 'string',
    minLength: 1,
    maxLength: MAX_DNS_NAME_CHARS,
    pattern: DNS_NAME.source,
    description: what,
  })

/** The path parameters of a resource. */
export const CrPath = z.object({ namespace: dnsName('The namespace of the resource.'), name: dnsName('Its name.') })
export type CrPath = z.output<typeof CrPath>

const nodes = z.int().min(0).max(MAX_NODES).nullish()

const Distribution = z
  .object({
    ready: nodes.describe('Nodes that have the profile; 0 where it is not there.'),
    total: nodes.describe('Nodes that should; 0 where it is not there.'),
    state: word.nullish().describe(`\`Pending\`, \`Partial\` or \`Ready\`; absent or blank is \`${NO_STATE}\`.`),
  })
  .meta({ id: 'PostedDistribution' })

/** A list of texts. Lists are long, so a check by code replaces zod's schema for each element. */
const texts = documentedAs(
  z.custom<readonly string[]>(Array.isArray, 'expected an array').check(({ value, issues }) => {
    const bad = (value as readonly unknown[]).findIndex((one) => typeof one !== 'string')
    if (bad >= 0) issues.push({ code: 'custom', message: 'expected a string', path: [bad], input: value })
  }),
  { type: 'array', items: { type: 'string', pattern: NO_NULL_PATTERN } },
)

const Rule = z
  .object({
    names: texts
      .nullish()
      .describe(
        `A name is skipped unless it matches \`${SYSCALL_NAME.source}\` or is \`_llseek\`, \`_newselect\` or ` +
          '`_sysctl`.',
      ),
    action: word.nullish().describe(`Absent or blank is \`${ALLOW_ACTION}\`; names of other actions do not count.`),
  })
  .meta({ id: 'PostedSyscallRule' })

const Spec = z
  .object({
    defaultAction: word.nullish().describe(`Absent or blank is \`${LOG_ACTION}\`.`),
    architectures: listOf(word, MAX_ARCHITECTURES).nullish(),
    syscalls: listOf(Rule, MAX_RULES).nullish(),
    workloadRef: z
      .object({ kind: name.nullish(), name: name.nullish() })
      .nullish()
      .describe('The workload in the same namespace that it is for.'),
  })
  .meta({ id: 'PostedCrSpec' })

/** The body of PUT /seccomp/crs/{namespace}/{name}. */
export const PostedCr = z
  .object({
    spec: Spec.describe('The spec of the resource, as it is.'),
    hash: name.nullish().describe('The hash in its status; absent or empty before it was rendered for the first time.'),
    distribution: Distribution.nullish().describe('Before that of the status. Null is absent.'),
    status: z.object({ distribution: Distribution.nullish() }).nullish(),
  })
  .meta({ id: 'PostedCr' })
export type PostedCr = z.output<typeof PostedCr>

/** The answer to a PUT. */
export const MirroredCr = z
  .strictObject({
    namespace: z.string(),
    name: z.string(),
    hash: z.string(),
    syscallCount: z.int().describe('Names that its rules allow, each once.'),
  })
  .meta({ id: 'MirroredCr' })
export type MirroredCr = z.output<typeof MirroredCr>

/** A row of `seccomp_cr` without its time. */
interface CrRow {
  namespace: string
  name: string
  default_action: string
  architectures: string[]
  /** Sorted by bytes and joined with commas. */
  syscalls: string
  syscall_count: number
  workload_kind: string | null
  workload_name: string | null
  hash: string
  ready: number
  total: number
  state: string
}

/**
 * Returns the row of a resource, and the number of names that were skipped because they cannot be names of syscalls.
 * @throws HttpError 413 for more than `MAX_NAMES` allowed names, repeated ones included
 */
export function mirrorOf(
  { namespace, name }: CrPath,
  { spec, hash, distribution, status }: PostedCr,
): { row: CrRow; skipped: number } {
  const { allowed, skipped } = allowedNames(spec.syscalls ?? [])
  const sent = distribution ?? status?.distribution
  const row = {
    namespace,
    name,
    default_action: nonBlank(spec.defaultAction) ?? LOG_ACTION,
    architectures: [...new Set((spec.architectures ?? []).map(foldedArchitecture).filter((arch) => arch !== ''))],
    syscalls: allowed.join(','),
    syscall_count: allowed.length,
    workload_kind: nonBlank(spec.workloadRef?.kind),
    workload_name: nonBlank(spec.workloadRef?.name),
    hash: hash ?? '',
    ready: sent?.ready ?? 0,
    total: sent?.total ?? 0,
    state: nonBlank(sent?.state) ?? NO_STATE,
  }
  return { row, skipped }
}

function allowedNames(rules: readonly z.output<typeof Rule>[]): { allowed: string[]; skipped: number } {
  const lists = rules
    .filter(({ action }) => (nonBlank(action) ?? ALLOW_ACTION) === ALLOW_ACTION)
    .map(({ names }) => names ?? [])
  const total = lists.reduce((sum, names) => sum + names.length, 0)
  if (total > MAX_NAMES) throw new HttpError(413, `spec.syscalls: the rules allow more than ${MAX_NAMES} names`)
  const allowed = new Set<string>()
  let skipped = 0
  for (const name of lists.flat()) {
    if (isSyscallName(name)) allowed.add(name)
    else skipped++
  }
  // The names are ASCII, so the default order is that of their bytes.
  return { allowed: [...allowed].sort(), skipped }
}

const nonBlank = (text: string | null | undefined): string | null => (text && text.trim() !== '' ? text : null)
