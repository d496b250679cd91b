import { type Application, buildApplication, buildCommand, buildRouteMap, text_en } from '@stricli/core'
import { VERSION } from '../../lib/version.ts'
import { changes } from './commands/changes.ts'
import { completion } from './commands/completion.ts'
import { components } from './commands/components.ts'
import { contention } from './commands/contention.ts'
import { coverage } from './commands/coverage.ts'
import { decisions } from './commands/decisions.ts'
import { diff } from './commands/diff.ts'
import { edges } from './commands/edges.ts'
import { exposure } from './commands/exposure.ts'
import { findings } from './commands/findings.ts'
import { flows } from './commands/flows.ts'
import { getPath } from './commands/get.ts'
import { images } from './commands/images.ts'
import { nodes } from './commands/nodes.ts'
import { runtime } from './commands/runtime.ts'
import { sbom } from './commands/sbom.ts'
import { search } from './commands/search.ts'
import { seccompDenials } from './commands/seccomp-denials.ts'
import { seccompExport } from './commands/seccomp-export.ts'
import { seccompProfiles } from './commands/seccomp-profiles.ts'
import { signatures } from './commands/signatures.ts'
import { sizing } from './commands/sizing.ts'
import { status } from './commands/status.ts'
import { trust } from './commands/trust.ts'
import { unshipped } from './commands/unshipped.ts'
import { usage } from './commands/usage.ts'
import { vex } from './commands/vex.ts'
import { vulns } from './commands/vulns.ts'
import { workload } from './commands/workload.ts'
import { workloads } from './commands/workloads.ts'
import type { CliContext } from './context.ts'
import { EXIT, Failure } from './failure.ts'
import { policyGenerate } from './policy/generate.ts'
import { policyTry } from './policy/try.ts'

const policy = buildRouteMap({
  routes: { generate: policyGenerate, try: policyTry },
  docs: { brief: 'Network policies from what was seen' },
})

const seccomp = buildRouteMap({
  routes: { denials: seccompDenials, export: seccompExport, profiles: seccompProfiles },
  docs: { brief: 'Syscalls that were observed and denied' },
})

const version = buildCommand<Record<never, never>, [], CliContext>({
  func() {
    return this.write(`${VERSION}\n`)
  },
  parameters: {},
  docs: { brief: 'Print the version of ctb' },
})

/** Only a fault of the program needs its stack. */
function messageOf(error: unknown): string {
  if (error instanceof Failure) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const commands = buildRouteMap({
  routes: {
    changes,
    completion,
    components,
    contention,
    coverage,
    decisions,
    diff,
    edges,
    exposure,
    findings,
    flows,
    get: getPath,
    images,
    nodes,
    policy,
    runtime,
    sbom,
    search,
    seccomp,
    signatures,
    sizing,
    status,
    trust,
    unshipped,
    usage,
    version,
    vex,
    vulns,
    workload,
    workloads,
  },
  docs: {
    brief: 'Ask the cluster telemetry broker',
    fullDescription: [
      'Ask the cluster telemetry broker.',
      '',
      'The broker is at --server, else CTB_SERVER, else http://127.0.0.1:9090; in a cluster --context leads to it.',
      'The token comes from CTB_TOKEN, KGUARDIAN_BROKER_TOKEN or --token-file, never from an argument.',
      'Exit codes: 0 done, 1 what was asked about is so, 2 usage, 3 not found, 4 token, 5 refused as partial,',
      '6 the broker cannot be reached, 7 a stream or an export ended early, 70 a fault of ctb, 130 interrupted.',
    ].join('\n'),
  },
})

/** The command line of the broker, by its own name or as a plugin of kubectl. */
export const appOf = (isPlugin: boolean): Application<CliContext> =>
  buildApplication(commands, {
    name: isPlugin ? 'kubectl telemetry-broker' : 'ctb',
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
    documentation: { caseStyle: 'convert-camel-to-kebab', disableAnsiColor: true },
    determineExitCode: (error) => (error instanceof Failure ? error.exitCode : EXIT.fault),
    localization: { loadText: () => ({ ...text_en, exceptionWhileRunningCommand: messageOf }) },
  })
