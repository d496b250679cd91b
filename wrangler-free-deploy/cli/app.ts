import { type Application, buildApplication, buildCommand, buildRouteMap, text_en } from '@stricli/core'
import { VERSION } from '../../lib/version.ts'
import { completion } from './commands/completion.ts'
import { images } from './commands/images.ts'
import type { CliContext } from './context.ts'
import { withExamples } from './examples.ts'
import { EXIT, Failure } from './failure.ts'
import { policyGenerate } from './policy/generate.ts'
import { policyTry } from './policy/try.ts'

const policy = buildRouteMap({
  routes: { generate: policyGenerate, try: policyTry },
  docs: { brief: 'Network policies from what was seen' },
})

const version = withExamples(
  buildCommand<Record<never, never>, [], CliContext>({
    func() {
      return this.write(`${VERSION}\n`)
    },
    parameters: {},
    docs: { brief: 'Print the version of ctb' },
  }),
  [{ words: 'version', what: 'That of the release; GET /version has that of the broker.' }],
)

/** Only a fault of the program needs its stack. */
function messageOf(error: unknown): string {
  if (error instanceof Failure) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const commands = buildRouteMap({
  routes: { completion, images, policy, version },
  docs: {
    brief: 'Ask the cluster telemetry broker',
    fullDescription: [
      'Ask the cluster telemetry broker.',
      '',
      'The broker is at --server, else CTB_SERVER, else http://127.0.0.1:9090; in a cluster --context leads to it.',
      'The token comes from CTB_TOKEN, KGUARDIAN_BROKER_TOKEN or --token-file, never from an argument.',
      'Exit codes: 0 done, 1 what was asked about is so, 2 usage, 3 not found, 4 token, 5 refused as partial,',
      '6 the broker cannot be reached, 70 a fault of ctb, 130 interrupted.',
    ].join('\n'),
  },
})

/** The command line of the broker, by its own name or as a plugin of kubectl. */
export const appOf = (isPlugin: boolean): Application<CliContext> =>
  buildApplication(commands, {
    name: isPlugin ? 'kubectl telemetry-broker' : 'ctb',
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: 'allow-kebab-for-camel' },
    documentation: { caseStyle: 'convert-camel-to-kebab', disableAnsiColor: true },
    determineExitCode: (error) => (error instanceof Failure ? error.exitCode : EXIT.fault),
    localization: { loadText: () => ({ ...text_en, exceptionWhileRunningCommand: messageOf }) },
  })
