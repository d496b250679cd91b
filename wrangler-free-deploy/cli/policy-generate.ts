import { writeFileSync } from 'node:fs'
import { buildCommand } from '@stricli/core'
import { ask, type ConnectionFlags } from './connection.ts'
import { type CliContext, printable } from './context.ts'
import { EXIT, Failure } from './failure.ts'
import { connectionFlags, sinceFlag } from './flags.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly format?: 'kubernetes' | 'cilium'
  readonly direction?: 'both' | 'ingress' | 'egress'
  readonly since?: string
  readonly minDays?: string
  readonly cidr?: 'exact' | '24'
  readonly output?: 'yaml' | 'json'
  readonly acknowledgePartial: boolean
  readonly out?: string
}

async function generate(this: CliContext, flags: Flags, workload?: string): Promise<void> {
  const text = await ask(this, flags, {
    ...{ method: 'GET', path: pathOf(flags.namespace, workload) },
    query: {
      ...{ format: flags.format, direction: flags.direction, since: flags.since, min_days: flags.minDays },
      ...{ cidr: flags.cidr, output: flags.output },
      acknowledgePartial: flags.acknowledgePartial ? 'true' : undefined,
    },
  })
  const whole = text.endsWith('\n') ? text : `${text}\n`
  if (flags.out === undefined) this.write(printable(whole))
  else writeFileSync(flags.out, text)
}

function pathOf(namespace: string | undefined, workload: string | undefined): string {
  const parts = workload?.split('/') ?? []
  const encoded = (texts: readonly string[]) => texts.map(encodeURIComponent).join('/')
  if (namespace !== undefined && workload === undefined) return `/namespaces/${encoded([namespace])}/networkpolicies`
  const whole = parts.length === 2 && namespace !== undefined ? [namespace, ...parts] : parts
  if (whole.length === 3 && !whole.includes('')) return `/workloads/${encoded(whole)}/networkpolicy`
  throw new Failure('expected NAMESPACE/KIND/NAME, or --namespace with KIND/NAME or alone', EXIT.usage)
}

export const policyGenerate = buildCommand<Flags, [workload?: string], CliContext>({
  func: generate,
  parameters: {
    aliases: { n: 'namespace', o: 'output' },
    positional: {
      kind: 'tuple',
      parameters: [
        { ...{ parse: String, optional: true, placeholder: 'NAMESPACE/KIND/NAME' }, brief: 'The workload.' },
      ],
    },
    flags: {
      namespace: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'NAME' },
        brief: 'Policies for all workloads of a namespace, behind one that denies everything.',
      },
      format: {
        ...{ kind: 'enum', values: ['kubernetes', 'cilium'], optional: true },
        brief: 'NetworkPolicy, or CiliumNetworkPolicy.',
      },
      direction: {
        ...{ kind: 'enum', values: ['both', 'ingress', 'egress'], optional: true },
        brief: 'The directions in which the policy isolates the pods.',
      },
      since: sinceFlag,
      minDays: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'DAYS' },
        brief: 'Days that the workload has to have been observed, 7 by default.',
      },
      cidr: {
        ...{ kind: 'enum', values: ['exact', '24'], optional: true },
        brief: 'Addresses one by one, or by network.',
      },
      output: { kind: 'enum', values: ['yaml', 'json'], optional: true, brief: 'The notation.' },
      acknowledgePartial: {
        ...{ kind: 'boolean', default: false, withNegated: false },
        brief: 'Make it although what was seen is not complete.',
      },
      out: { kind: 'parsed', parse: String, optional: true, placeholder: 'FILE', brief: 'A file to write to.' },
      ...connectionFlags,
    },
  },
  docs: { brief: 'Make network policies that allow what was seen' },
})
