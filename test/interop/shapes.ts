/** Keys, types and nullability of answers about use, tiers, exposure and capabilities, as clients were made for. */
import assert from 'node:assert/strict'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any
/** The type of each key; `?` allows null, `*` is a key that captured answers do not have. */
type Shape = { readonly [key: string]: string | Shape | readonly [Shape] }

const DETAIL: Shape = {
  ...{ state: 'string', reason: '?string', observedSince: '?naive', windowHours: 'int', containers: 'int' },
  coverage: 'string',
}
const REPORT: Shape = {
  ...{ source: 'string', reportDigest: 'string', join: 'string', digestKind: 'string', scannedAt: 'naive' },
  ...{ dbUpdatedAt: '?naive', scannerName: '?string', scannerVersion: '?string', osFamily: '?string' },
  ...{ osName: '?string', osEosl: 'boolean', imageRef: '?string', itemCount: 'int', sbomFormat: '?string' },
  ...{ receivedAt: 'naive', sbomSources: 'strings', sbomTrust: '?string', attestation: '?string' },
}
const FINDING: Shape = {
  ...{ id: 'string', installedVersion: 'string', fixedVersions: 'strings', fixable: 'boolean', severity: 'string' },
  ...{ package: { name: 'string', type: '?string', purl: '?string' }, score: '?number', cvss: {}, title: '?string' },
  ...{ primaryUrl: '?string', target: '?string', class: '?string', publishedAt: '?naive', lastModifiedAt: '?naive' },
  ...{ filePaths: 'strings', kev: '?boolean', kevDateAdded: '?naive', epss: '?number', epssPercentile: '?number' },
  ...{ sources: 'strings', reportDigests: 'strings', inUse: '?boolean', inUseState: 'string', inUseDetail: DETAIL },
  ...{ tier: 'string', tierFactors: 'strings', '*aliases': 'strings', '*omitted': 'int' },
  ...{ '*status': '?string', '*decision': '?string', '*decided': 'boolean' },
}
export const FINDINGS: Shape = {
  ...{ digest: 'string', reports: [REPORT], items: [FINDING], nextAfter: '?string' },
  '*retiredGuesses': [{}],
}
const VULNERABILITY: Shape = {
  ...{ id: 'string', severity: 'string', maxScore: '?number', fixable: 'boolean', kev: '?boolean', maxEpss: '?number' },
  ...{ packages: 'strings', sources: 'strings', images: 'int', workloads: 'int', runningWorkloads: 'int' },
  ...{ namespaces: 'int', weakestJoin: 'string', inUse: '?boolean', inUseState: 'string', tier: '?string' },
  ...{ executedWorkloads: 'int', loadedWorkloads: 'int', unknownWorkloads: 'int', notObservedWorkloads: 'int' },
  ...{ exposedWorkloads: 'int', '*aliases': 'strings', '*packageCount': 'int', '*decidedWorkloads': 'int' },
}
export const LIST: Shape = {
  ...{ items: [VULNERABILITY], nextAfter: '?string', computedAt: '?naive', staleSeconds: '?int', '*order': 'string' },
}
export const EXPOSURE: Shape = {
  ...{ id: 'string', severity: 'string', fixable: 'boolean', inUse: '?boolean', inUseState: 'string' },
  ...{ truncated: 'boolean', '*aliases': 'strings', '*truncatedLists': 'strings' },
  images: [
    {
      ...{ digest: 'string', repository: '?string', tags: 'strings', sources: 'strings', reportDigests: 'strings' },
      ...{ join: 'string', severity: 'string' },
      packages: [
        {
          name: 'string',
          installedVersion: 'string',
          fixedVersions: 'strings',
          severity: 'string',
          sources: 'strings',
        },
      ],
    },
  ],
  workloads: [
    {
      ...{ clusterId: 'string', namespace: 'string', kind: 'string', name: 'string', container: 'string' },
      ...{ imageDigest: 'string', join: 'string', running: 'boolean', lastSeen: 'naive', inUse: '?boolean' },
      inUseState: 'string',
      network: {
        ...{ windowHours: 'int', podsObserved: 'int', flowsObserved: 'int', ingressFlowsObserved: 'int' },
        ...{ ingressFromOtherNamespaces: 'int', ingressFromUnattributedPeers: 'int', ingressFromPublicIps: 'int' },
        ...{ ingressFromNodes: 'int', exposed: '?boolean', exposedVia: 'strings' },
      },
    },
  ],
  namespaces: [
    {
      ...{ namespace: 'string', workloads: 'int', runningWorkloads: 'int', exposedWorkloads: 'int' },
      unknownExposureWorkloads: 'int',
    },
  ],
}
const SEEN: Shape = { capability: 'string', count: 'int', firstSeen: 'naive', lastSeen: 'naive' }
export const CAPABILITIES: Shape = {
  windowHours: 'int',
  containers: [
    {
      ...{ container: 'string', digests: 'strings', evidence: 'string', reason: '?string', observedSince: '?naive' },
      '*reasonDetail': '?object',
      ...{ used: [SEEN], denied: [SEEN], probed: [SEEN], recommendation: '?object', unusedAdded: 'strings' },
    },
  ],
}

const isStrings = (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string')
const TYPES: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  naive: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?$/.test(value),
  int: Number.isInteger,
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  object: (value) => typeof value === 'object' && value !== null,
  strings: isStrings,
}

/** What is wrong with a value, by its path. */
function wrong(value: Json, shape: string | Shape | readonly [Shape], path: string): string[] {
  if (typeof shape === 'string') {
    const isOk = (shape.startsWith('?') && value === null) || TYPES[shape.replace('?', '')]!(value)
    return isOk ? [] : [`${path}: ${JSON.stringify(value)} is no ${shape}`]
  }
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return [`${path} is no list`]
    return value.flatMap((one, n) => wrong(one, (shape as readonly [Shape])[0], `${path}[${n}]`))
  }
  const keys = Object.keys(shape)
  if (keys.length === 0) return TYPES.object!(value) ? [] : [`${path} is no object`]
  const known = keys.map((key) => key.replace('*', ''))
  return [
    ...Object.keys(value).flatMap((key) => (known.includes(key) ? [] : [`${path}.${key} is unknown`])),
    ...keys.flatMap((key) => {
      const name = key.replace('*', '')
      return name in value
        ? wrong(value[name], (shape as Shape)[key]!, `${path}.${name}`)
        : [`${path}.${name} is missing`]
    }),
  ]
}
/** Fails with all keys that are missing, unknown or of another type. */
export const assertShape = (value: Json, shape: Shape): void => assert.deepEqual(wrong(value, shape, ''), [])
