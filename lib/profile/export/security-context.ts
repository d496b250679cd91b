/** The patch of an export towards the restricted standard (docs/contract.md#workload-profiles). */
import { oneLine } from '../../text/one-line.ts'
import { comment } from '../../text/yaml.ts'
import type { WorkloadKey } from '../built.ts'
import { type ExportDocument, fileNameOf, missing, type Source } from './document.ts'
import { openingOf, quotedWorkload } from './provenance.ts'

/** Kinds of which the API server lets nobody change the pods. */
const FIXED_KINDS = ['Pod', 'Job']

export function securityContextPatch(source: Source): ExportDocument {
  const { key, mode, profile } = source
  const { containers, recommendation } = profile.dimensions.podSecurity
  if (containers.length === 0) return missing('securitycontext', 'no container of the workload is known')
  if (recommendation === null)
    return missing('securitycontext', 'nothing to patch: no evaluated check fails in a container that can be patched')
  const applyWith = commandOf(key)
  const fileName = fileNameOf('securitycontext')
  const content = [
    openingOf(source, 'securitycontext', mode),
    comment(`A strategic-merge patch for ${quotedWorkload(key)}, no object of its own. Apply it with:`),
    comment(`  ${applyWith}`),
    comment('Then let the namespace be judged by the standard:'),
    comment(`  kubectl label namespace ${word(key.namespace)} pod-security.kubernetes.io/${mode}=restricted`),
    ...recommendation.caveats.map((caveat) => comment(`CAVEAT: ${caveat}`)),
    recommendation.yaml.endsWith('\n') ? recommendation.yaml : `${recommendation.yaml}\n`,
  ].join('')
  return {
    ...{ artifact: 'securitycontext', fileName, image: null, apiVersion: null, kind: null },
    ...{ contentType: 'application/yaml', content, applyWith, title: 'strategic-merge patch' },
  }
}

/** A name as one word of a shell. */
const word = (name: string): string =>
  /^[A-Za-z0-9._-]+$/.test(name) ? name : `'${oneLine(name).replaceAll("'", `'\\''`)}'`

const commandOf = ({ namespace, kind, name }: WorkloadKey): string =>
  FIXED_KINDS.includes(kind)
    ? `(a ${kind} cannot be patched: create it anew with these fields)`
    : `kubectl patch ${word(kind.toLowerCase())} ${word(name)} -n ${word(namespace)} --type strategic ` +
      `--patch-file ${fileNameOf('securitycontext')}`
