import { type Application, buildApplication, buildRouteMap, text_en } from '@stricli/core'
import { VERSION } from '../../lib/version.ts'
import { type CliContext, printable } from './context.ts'
import { EXIT, Failure } from './failure.ts'
import { policyGenerate } from './policy-generate.ts'
import { policyTry } from './policy-try.ts'

const policy = buildRouteMap({
  routes: { generate: policyGenerate, try: policyTry },
  docs: { brief: 'Network policies from what was seen' },
})

/** Errors that are no failures of the user or the broker keep their stack. */
const messageOf = (error: unknown): string =>
  error instanceof Failure
    ? printable(error.message)
    : error instanceof Error
      ? (error.stack ?? error.message)
      : String(error)

/** The command line of the broker. */
export const app: Application<CliContext> = buildApplication(
  buildRouteMap({ routes: { policy }, docs: { brief: 'Ask the cluster telemetry broker' } }),
  {
    name: 'ctb',
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: 'allow-kebab-for-camel' },
    documentation: { caseStyle: 'convert-camel-to-kebab', disableAnsiColor: true },
    determineExitCode: (error) => (error instanceof Failure ? error.exitCode : EXIT.notReachable),
    localization: { loadText: () => ({ ...text_en, exceptionWhileRunningCommand: messageOf }) },
  },
)
