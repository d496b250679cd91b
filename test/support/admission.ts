/** Policies made without a database, from containers and the results of checking their images. */

import { Coverage, type Running, type SignatureResult } from '../../lib/admission/coverage.ts'
import { generate, planOf } from '../../lib/admission/index.ts'
import type { Options } from '../../lib/admission/plan.ts'
import { Slice } from '../../lib/event-loop/slices.ts'
import { signature } from './attestations.ts'

export interface State {
  readonly running: readonly Running[]
  /** By digest. */
  readonly results: ReadonlyMap<string, SignatureResult>
}

/** A container with its image and the result for it; the same name gives the same image. */
export function container(
  image: string,
  repository: string | null,
  result: Partial<SignatureResult> | null = {},
  reference = `${repository}:v1`,
): { running: Running; result: SignatureResult | null } {
  const digest = `sha256:${Buffer.from(image).toString('hex').padEnd(64, '0').slice(0, 64)}`
  const whole = result && {
    verdict: 'verified' as const,
    signatures: [signature() as never],
    attestations: [],
    ...result,
  }
  return { running: { digest, reference, repository, verdict: whole?.verdict ?? null }, result: whole }
}

export function stateOf(containers: readonly ReturnType<typeof container>[]): State {
  const results = containers.flatMap(({ running, result }) => (result ? [[running.digest, result] as const] : []))
  return { running: containers.map(({ running }) => running), results: new Map(results) }
}

/** The coverage, built in the order in which rows are read. */
export async function coverageOf({ running, results }: State): Promise<Coverage> {
  const coverage = new Coverage()
  for (const row of running) coverage.add(row)
  for (const digest of await coverage.digests(new Slice())) coverage.addResult(digest, results.get(digest) ?? null)
  return coverage
}

export const optionsOf = (options: Partial<Options> = {}): Options => ({
  format: 'policy-engine-a',
  wireFormat: options.format ?? 'policy-engine-a',
  isEnforced: false,
  namespace: null,
  annotationPrefix: 'kguardian.dev',
  ...options,
})

export async function policiesOf(state: State, options: Partial<Options> = {}): Promise<string> {
  return (await generate(await planOf(await coverageOf(state)), optionsOf(options))).toString()
}
