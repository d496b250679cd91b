import { buildCommand } from '@stricli/core'
import { ask, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { chosen, connectionFlags, sinceFlag, valued } from '../flags.ts'
import { writeAnswer } from '../output/answer.ts'
import { outputFlags } from '../output/flags.ts'

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
  readonly printRequest?: boolean
}

/** Workloads without a policy, and connections that were seen and not allowed, as comments of YAML or notes say. */
const LEFT_OUT = /^(?:# (?:NOTE: )?)?(?:LEFT OUT(?:, and cut off by this policy)?: |(?=dropped, so not allowed))(.*)$/gm

async function generate(this: CliContext, flags: Flags, workload?: string): Promise<void> {
  const { format, direction, since, minDays, cidr, output = 'yaml', acknowledgePartial, out } = flags
  const question = {
    method: 'GET' as const,
    path: pathOf(flags.namespace, workload),
    query: {
      ...{ format, direction, since, min_days: minDays, cidr, output },
      acknowledgePartial: acknowledgePartial ? 'true' : undefined,
    },
    expects: `application/${output}`,
  }
  if (flags.printRequest) return this.write(requestText(this, flags, question))
  const bytes = await ask(this, flags, question)
  await writeAnswer(this, bytes, output, out)
  // Two workloads of a namespace may be the ends of one connection.
  const left = [...notesOf(bytes.toString(), output).matchAll(LEFT_OUT)]
  for (const one of new Set(left.map(([, text]) => text))) this.say(`left out: ${one}`)
}

/** The text with the notes: YAML has them in comments, JSON in annotations. */
function notesOf(text: string, output: 'yaml' | 'json'): string {
  if (output === 'yaml') return text
  const notes: unknown[] = []
  JSON.parse(text, (key, value) => {
    if (key.endsWith('/notes')) notes.push(value)
    return value
  })
  return notes.join('\n')
}

/** `NAMESPACE/KIND/NAME`, the last two of them within a namespace, or the namespace alone. */
function pathOf(namespace: string | undefined, workload: string | undefined): string[] {
  const parts = workload?.split('/') ?? []
  const whole = namespace === undefined ? parts : [namespace, ...parts]
  // A path loses segments of dots.
  const isPath = whole.every((part) => !/^\.{0,2}$/.test(part))
  if (isPath && whole.length === 1 && workload === undefined) return ['namespaces', ...whole, 'networkpolicies']
  if (isPath && whole.length === 3) return ['workloads', ...whole, 'networkpolicy']
  throw new Failure('expected NAMESPACE/KIND/NAME, or --namespace, alone or with KIND/NAME', EXIT.usage)
}

export const policyGenerate = buildCommand<Flags, [workload?: string], CliContext>({
  func: generate,
  parameters: {
    aliases: { n: 'namespace', o: 'output' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          optional: true,
          placeholder: 'NAMESPACE/KIND/NAME',
          brief: 'A workload, such as shop/Deployment/api.',
        },
      ],
    },
    flags: {
      namespace: valued('NAME', 'All workloads of a namespace, behind a policy that denies all.'),
      format: chosen(['kubernetes', 'cilium'], 'NetworkPolicy, the default, or CiliumNetworkPolicy.'),
      direction: chosen(['both', 'ingress', 'egress'], 'The directions in which the policy isolates the pods.'),
      since: sinceFlag,
      minDays: valued('DAYS', 'Days that a workload has to have been observed; 7 by default.'),
      cidr: chosen(['exact', '24'], 'External addresses one by one, the default, or by network.'),
      output: chosen(['yaml', 'json'], 'The notation; yaml by default.'),
      acknowledgePartial: {
        kind: 'boolean',
        default: false,
        withNegated: false,
        brief: 'Make it although what was seen is not complete.',
      },
      printRequest: outputFlags.printRequest,
      out: valued('FILE', 'A file to write to, instead of stdout.'),
      ...connectionFlags,
    },
  },
  docs: {
    brief: 'Make network policies that allow what was seen',
    customUsage: [
      { input: 'NAMESPACE/KIND/NAME [flags]', brief: 'of a workload' },
      { input: '-n NAMESPACE [flags]', brief: 'of all workloads of a namespace' },
    ],
    fullDescription: [
      'Make network policies that allow what was seen of a workload, or of all workloads of a namespace.',
      'Nothing is applied. Connections that are left out are said on stderr, and in comments of YAML or notes of JSON.',
      'Exit code 5: too little was seen, and the broker says what is missing.',
    ].join('\n'),
  },
})
