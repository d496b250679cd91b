/** Search hits: their text, and the page to which each leads. */
import type { Answer } from '../api/client.ts'
import { href } from '../place.ts'

export type Hit = Answer<'/search'>['hits'][number]

export function labelOf(hit: Hit): string {
  switch (hit.type) {
    case 'vulnerability':
      return [hit.id, ...hit.aliases].join(', ')
    case 'package':
      return hit.purl ?? hit.name ?? ''
    case 'image':
      return `${hit.repository ?? ''}${hit.tags[0] ? `:${hit.tags[0]}` : ''} ${hit.digest.slice(0, 19)}`.trim()
    case 'repository':
      return hit.repository
    case 'workload':
      return `${hit.namespace}/${hit.name} (${hit.kind})`
    case 'pod':
      return `${hit.namespace ?? ''}/${hit.name}`
    case 'service':
      return hit.name === null ? hit.address : `${hit.namespace ?? ''}/${hit.name}`
    case 'namespace':
      return hit.namespace
    case 'node':
      return hit.name
    case 'address':
      return hit.address
  }
}

export function placeOf(hit: Hit): string {
  switch (hit.type) {
    case 'vulnerability':
      return href(['vulnerability', hit.id])
    case 'package':
      return href(['packages'], hit.purl === null ? { name: hit.name ?? '' } : { purl: hit.purl })
    case 'image':
      return href(['image', hit.digest])
    case 'repository':
      return href(['images'], { repository: hit.repository })
    case 'workload':
      return href(['workload', hit.namespace, hit.kind, hit.name])
    case 'pod':
      return hit.namespace !== null && hit.workloadKind !== null && hit.workloadName !== null
        ? href(['workload', hit.namespace, hit.workloadKind, hit.workloadName])
        : href(['flows'], hit.namespace === null ? { ip: hit.address } : { pod: `${hit.namespace}/${hit.name}` })
    case 'service':
      return href(
        ['flows'],
        hit.name === null || hit.namespace === null ? { ip: hit.address } : { service: `${hit.namespace}/${hit.name}` },
      )
    case 'namespace':
      return href(['map'], { open: hit.namespace })
    case 'node':
      return href(['node', hit.name])
    case 'address':
      return href(['flows'], { ip: hit.address })
  }
}
