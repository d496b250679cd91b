import { buildCommand } from '@stricli/core'
import { ask, type ConnectionFlags, read } from './connection.ts'
import { type CliContext, printable } from './context.ts'
import { EXIT } from './failure.ts'
import { connectionFlags, sinceFlag } from './flags.ts'
import { type Trial, trialText } from './trial-text.ts'

interface Flags extends ConnectionFlags {
  readonly file: readonly string[]
  readonly since?: string
  readonly until?: string
  readonly namespace?: string
  readonly output: 'table' | 'json'
  readonly color: 'auto' | 'always' | 'never'
}

async function tryPolicies(this: CliContext, flags: Flags): Promise<void> {
  const { since, until, namespace } = flags
  // JSON is YAML, too.
  const body = flags.file.map(read).join('\n---\n')
  const text = await ask(this, flags, {
    ...{ method: 'POST', path: '/networkpolicy/try', query: { since, until, namespace }, body },
  })
  const trial = JSON.parse(text) as Trial
  const isColoured = flags.color === 'auto' ? this.isColoured : flags.color === 'always'
  this.write(flags.output === 'json' ? `${text}\n` : trialText(trial, isColoured, printable))
  if (trial.unknown > 0) this.say(`${trial.unknown} edges are unknown: they may be denied`)
  if (trial.denied > 0) this.exitWith(EXIT.isSo)
}

export const policyTry = buildCommand<Flags, [], CliContext>({
  func: tryPolicies,
  parameters: {
    aliases: { f: 'file', n: 'namespace', o: 'output' },
    flags: {
      file: {
        ...{ kind: 'parsed', parse: String, variadic: true, placeholder: 'FILE' },
        brief: 'Policies as YAML or JSON, - for stdin. Repeat it for several files: they are tried together.',
      },
      since: sinceFlag,
      until: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'TIME' },
        brief: 'Edges that were first seen before then.',
      },
      namespace: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'NAME' },
        brief: 'Only edges with an end in this namespace.',
      },
      output: { kind: 'enum', values: ['table', 'json'], default: 'table', brief: 'For people, or the whole answer.' },
      color: { kind: 'enum', values: ['auto', 'always', 'never'], default: 'auto', brief: 'Colours.' },
      ...connectionFlags,
    },
  },
  docs: { brief: 'Try network policies on what was seen; exit code 1 if they deny any of it' },
})
