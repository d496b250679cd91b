import { buildCommand } from '@stricli/core'
import { flagsOf, queryOf } from '../api/parameters.ts'
import { ask, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { connectionFlags } from '../flags.ts'
import { namespaceOfWorkload, pathOfWorkload, workloadArgument } from '../list/workload.ts'
import { writeAnswer } from '../output/answer.ts'
import { outputFlags } from '../output/flags.ts'

const ROUTE = '/seccomp/profiles/{namespace}/{kind}/{name}/export'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly format?: 'yaml' | 'json'
  readonly acknowledgePartial: boolean
  readonly out?: string
  readonly printRequest?: boolean
}

async function exportProfile(this: CliContext, flags: Flags, workload: string): Promise<void> {
  const { format = 'yaml', acknowledgePartial } = flags
  const question = {
    method: 'GET',
    path: pathOfWorkload(ROUTE, flags.namespace, workload),
    query: {
      ...queryOf(ROUTE, flags as never),
      ...{ format, acknowledgePartial: acknowledgePartial ? 'true' : undefined },
    },
    expects: `application/${format}`,
  } as const
  if (flags.printRequest) return this.write(requestText(this, flags, question))
  await writeAnswer(this, await ask(this, flags, question), format, flags.out)
}

export const seccompExport = buildCommand<Flags, [workload: string], CliContext>({
  func: exportProfile,
  parameters: {
    aliases: { n: 'namespace' },
    positional: { kind: 'tuple', parameters: [{ parse: String, ...workloadArgument }] },
    flags: {
      ...flagsOf(ROUTE),
      namespace: namespaceOfWorkload,
      format: { kind: 'enum', values: ['yaml', 'json'], optional: true, brief: 'The notation; yaml by default.' },
      acknowledgePartial: {
        kind: 'boolean',
        default: false,
        withNegated: false,
        brief: 'Let it enforce although the capture is not complete.',
      },
      out: outputFlags.out,
      printRequest: outputFlags.printRequest,
      ...connectionFlags,
    } as never,
  },
  docs: {
    brief: 'Make a SeccompProfile of the syscalls that were observed',
    customUsage: ['NAMESPACE/KIND/NAME [flags]', { input: '-n NAMESPACE KIND/NAME [flags]', brief: 'the same' }],
    fullDescription: [
      'Make a SeccompProfile of the syscalls that were observed. Nothing is applied.',
      'It logs other syscalls, unless --default-action says otherwise.',
      'Exit code 5: it would enforce, and the capture is not complete.',
    ].join('\n'),
  },
})
