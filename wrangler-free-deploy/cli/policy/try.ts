import { buildCommand } from '@stricli/core'
import { type Ask, ask, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import { type CliContext, type ColorChoice, isColoured } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { colorFlag, connectionFlags, sinceFlag, valued } from '../flags.ts'
import { readFile, readText } from '../input.ts'
import { writeAnswer } from '../output/answer.ts'
import { outputFlags } from '../output/flags.ts'
import { counted } from '../output/lines.ts'
import { type Documents, joined, type PolicyFile, placed } from './documents.ts'
import { type Trial, trialText } from './trial-text.ts'

interface Flags extends ConnectionFlags {
  readonly file?: readonly string[]
  readonly since?: string
  readonly until?: string
  readonly namespace?: string
  readonly output: 'table' | 'json'
  readonly color: ColorChoice
  readonly printRequest?: boolean
}

async function tryPolicies(this: CliContext, flags: Flags, ...more: string[]): Promise<void> {
  const { since, until, namespace } = flags
  const documents = joined(await readFiles(this, [...(flags.file ?? []), ...more]))
  const question: Ask = {
    method: 'POST',
    path: ['networkpolicy', 'try'],
    query: { since, until, namespace },
    body: { contentType: 'application/yaml', text: documents.text },
    expects: 'application/json',
  }
  // The body of the request is then that of stdin.
  if (flags.printRequest) return this.write(requestText(this, flags, question))
  const bytes = await inFiles(documents, () => ask(this, flags, question))
  const trial = trialOf(bytes)
  if (trial.denied > 0) this.exitWith(EXIT.isSo)
  if (flags.output === 'json') await writeAnswer(this, bytes, 'json')
  else await this.write(trialText(trial, documents, { width: this.columns, isColoured: isColoured(this, flags.color) }))
  if (trial.unknown > 0) this.say(`${counted(trial.unknown, 'edge')} could not be judged`)
  if (trial.evaluated === 0) this.say('no edge was judged: nothing that was seen concerns these policies')
}

function trialOf(bytes: Buffer): Trial {
  const trial = JSON.parse(bytes.toString()) as Trial
  if (Array.isArray(trial?.deniedEdges) && Array.isArray(trial.policies)) return trial
  throw new Failure('the answer is not that of a broker', EXIT.notReachable)
}

async function readFiles({ stdin }: CliContext, paths: readonly string[]): Promise<PolicyFile[]> {
  if (paths.length === 0) throw new Failure('expected --file FILE, or - for stdin', EXIT.usage)
  if (paths.filter((path) => path === '-').length > 1) throw new Failure('expected - once', EXIT.usage)
  const files: PolicyFile[] = []
  for (const path of paths) {
    files.push(
      path === '-'
        ? { name: 'stdin', text: await readText('stdin', stdin) }
        : { name: path, text: await readFile(path) },
    )
  }
  return files
}

/** A refusal says which document of which file is wrong. */
async function inFiles<T>(documents: Documents, asking: () => Promise<T>): Promise<T> {
  try {
    return await asking()
  } catch (error) {
    throw error instanceof Failure ? new Failure(placed(documents, error.message), error.exitCode) : error
  }
}

export const policyTry = buildCommand<Flags, string[], CliContext>({
  func: tryPolicies,
  parameters: {
    aliases: { f: 'file', n: 'namespace', o: 'output' },
    positional: {
      kind: 'array',
      parameter: { parse: String, placeholder: 'FILE', brief: 'Further files, so that -f *.yaml takes all of them.' },
    },
    flags: {
      file: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        placeholder: 'FILE',
        brief: 'Policies as YAML or JSON, - for stdin. Those of all files are tried together.',
      },
      since: sinceFlag,
      until: valued('TIME', 'Edges that were first seen before then.'),
      namespace: valued('NAME', 'Only edges with an end in this namespace.'),
      output: {
        kind: 'enum',
        values: ['table', 'json'],
        default: 'table',
        brief: 'For people, or the answer itself.',
      },
      color: colorFlag,
      printRequest: outputFlags.printRequest,
      ...connectionFlags,
    },
  },
  docs: {
    brief: 'Try network policies on what was seen; exit code 1 if they deny any of it',
    customUsage: ['-f FILE... [flags]', { input: '-f - [flags]', brief: 'from stdin' }],
    fullDescription: [
      'Try network policies on what was seen. Nothing is applied.',
      'Exit code 0: nothing would have been denied; 1: something would have been.',
      'Only the given policies are looked at, not those of the cluster, and only connections that were seen.',
    ].join('\n'),
  },
})
