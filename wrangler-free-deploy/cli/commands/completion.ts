import { buildCommand } from '@stricli/core'
import { SCRIPTS } from '../completion/scripts.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'

type Shell = keyof typeof SCRIPTS

const SHELLS = Object.keys(SCRIPTS) as Shell[]

function shellOf(text: string): Shell {
  const shell = SHELLS.find((one) => one === text)
  if (shell === undefined) throw new Failure(`expected one of ${SHELLS.join(', ')}`, EXIT.usage)
  return shell
}

export const completion = buildCommand<Record<never, never>, [Shell], CliContext>({
  func(_, shell) {
    return this.write(SCRIPTS[shell])
  },
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: shellOf,
          proposeCompletions: () => SHELLS,
          placeholder: 'SHELL',
          brief: `The shell: ${SHELLS.join(', ')}.`,
        },
      ],
    },
  },
  docs: {
    brief: 'Print the completion of ctb for a shell',
    fullDescription: [
      'Print the completion of ctb for a shell: of commands, flags, their values, and names that the broker knows.',
      'bash: source <(ctb completion bash); fish: ctb completion fish | source; zsh: source <(ctb completion zsh).',
      'kubectl completes its plugin itself, where kubectl_complete-telemetry_broker is in PATH.',
    ].join('\n'),
  },
})
